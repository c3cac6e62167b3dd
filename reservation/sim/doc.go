// Package sim has many submitters reserve slots at many peers at virtual time, and
// judges what happened.
//
//	Crowd: submitters' jobs -- reservation.Reserve --> World: links, faults
//	                                                      |  Hold, Confirm, ...
//	History <------- every call and its answer ------- reservation.Ledger of each peer
//	   |
//	 Check: which of S1..S4 was broken, where and when
//
// The submitters' side is the real [reservation.Reserve] and the peers' side the
// real [reservation.Ledger]; between them is a [World] in memory. All waiting is
// time.After, so a World belongs inside a testing/synctest bubble, where hours
// pass at once.
//
// A [History] knows the answers that peers gave, not the ledgers that gave them:
// from these it works out who may believe to have which slots until when, and so
// finds a ledger out that breaks a promise. What one scheduler for all would make of the same jobs
// is [Crowd.Schedule]. What it leaves out is the network's
// own ways: messages are delayed, dropped with their peer or their submitter, and
// never garbled.
package sim
