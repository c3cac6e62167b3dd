// Package sim looks for candidates in networks of thousands of volunteers' peers
// at virtual time, to measure how long that takes and how much is said.
//
//	Habits, Place ---> World: who is up, and how far ---> tables, records (Kademlia)
//	                        |                                   |  lookup
//	                        v                                   v
//	                      replies --------------> discovery.Rehearsal: the core of Candidates
//
// The core is the real one. Simulated are the volunteers, who come and go; the
// distances between them; and Kademlia as kad-dht does it: tables of 20 peers for
// each bit of distance, lookups that ask 10 at a time and end when the 20 nearest
// have answered or records enough are found, records at the 20 nearest for 48 hours after their peers have
// last announced themselves.
//
// A World does what it does for a seed. What it leaves out: peers take no time to
// answer and links none to carry; nobody is behind a NAT; the searcher's address
// book holds only what its table does.
package sim
