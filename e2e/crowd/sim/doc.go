// Package sim simulates many submitters that reserve slots at many peers in virtual time, and checks the
// promises of package reservation.
//
//	Crowd: submitters' jobs -- reservation.Reserve --> World: links, faults
//	                                                      |  Hold, Confirm, ...
//	History <------- every call and its answer ------- reservation.Ledger of each peer
//	   |
//	 Check: which of S1..S4 was broken, where and when
//
// The submitters run the real [reservation.Reserve] and the peers the real [reservation.Ledger]. Between
// them is an in-memory [World]. All waiting uses time.After, so a World belongs inside a testing/synctest
// bubble, where hours pass instantly.
//
// A [History] records the answers that peers gave, not the state of their ledgers. From these answers it
// derives which job may assume to have which slots until when, and so detects a ledger that breaks a
// promise. [Crowd.Schedule] computes what a central scheduler would achieve with the same jobs. Messages
// are delayed, or dropped together with their peer or submitter, but never corrupted.
package sim
