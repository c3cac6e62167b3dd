// Package lifetime computes the probability that a failure detector fails before the application that it
// monitors (promise F3). It uses arithmetic and simulation; no peer runs it. The command
// e2e/bench/lifetime writes its tables and plots into docs.
//
// The model is that of P2P-MPI. Each of a job's n·r processes runs on a machine of its own, and crashes with
// probability f in a unit of time. All crashes happen at once.
//
//	set of crashes ──► Job.Survives     each rank has a replica left
//	               ├─► Gossip.Cut       the detector fails: fewer than two survivors,
//	               │                    or one that never again hears of another one
//	               └─► Gossip.Late      news of a survivor takes longer than the round
//	                                    of all targets, so that it looks failed
//
//	Measure: by number of crashes, the fraction of sets with a property,
//	   by enumeration if there are few sets, else from a sample
//	      └──► Profile.At(f): the probability, with its interval
//
// Cut is the failure of the detector as defined in the literature, and yields its figures. With 4
// members, binary round robin fails for 4 of the 6 pairs of crashes and for all triples and quadruples:
// 4f²(1−f)² + 4f³(1−f) + f⁴ = 4f² − 4f³ + f⁴. An application of 2 ranks with 2 replicas fails with
// probability 2f² − f⁴.
//
// The package compares BRR and DBRR as in the literature, where messages to a crashed member are lost,
// with LiveDBRR of package faultdetect. LiveDBRR counts distances in live members once the survivors know
// of the crashes. The tests of faultdetect show with its own core that the survivors learn of the crashes
// without failing each other. That core asks a suspect before failing it, which this arithmetic omits.
package lifetime
