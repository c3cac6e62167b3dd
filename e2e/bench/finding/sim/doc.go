// Package sim simulates searches for candidates in networks of thousands of volunteers' peers in virtual
// time. It measures their duration and the number of messages.
//
//	Habits, Place ---> World: which peers are up, distances ---> tables, records (Kademlia)
//	                        |                                   |  lookup
//	                        v                                   v
//	                      replies --------------> discovery.Rehearsal: the core of Candidates
//
// The core is the real one. The simulation covers the volunteers, who come and go, their distances, and Kademlia
// as kad-dht implements it. Tables hold 20 peers for each bit of distance. Lookups ask 10 peers at a time and
// end when the 20 nearest have answered or enough records are found. The 20 nearest peers keep a record for 48
// hours after its peer last announced itself.
//
// A World is deterministic for a given seed. The model ignores processing time, bandwidth and NATs. The
// searcher's address book holds only the peers of its routing table.
package sim
