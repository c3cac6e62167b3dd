// Package lifetime computes how likely a failure detector fails before the
// application that it watches (promise F3). It is arithmetic and simulation; no
// peer runs it. The command e2e/lifetime writes its tables and plots into docs.
//
// The model is that of P2P-MPI: of a job's n·r processes, each on a machine of
// its own, each crashes with probability f in a unit of time, all at once.
//
//	set of crashes ──► Job.Survives     each rank has a replica left
//	               ├─► Gossip.Cut       the detector fails: fewer than two survivors,
//	               │                    or one that never again hears of another
//	               └─► Gossip.Late      news of a survivor takes longer than the round
//	                                    of all targets, so that it looks failed
//
//	Measure: by number of crashes, the fraction of sets with a property,
//	   all of them tried where they are few, else a sample
//	      └──► Profile.At(f): the probability, with its interval
//
// Cut is the failure of the detector in the literature, and gives its figures:
// with 4 members binary round robin fails for 4 of the 6 pairs of crashes, for
// all triples and quadruples, 4f²(1−f)² + 4f³(1−f) + f⁴ = 4f² − 4f³ + f⁴, against
// 2f² − f⁴ for an application of 2 ranks with 2 replicas.
//
// The detectors compared are BRR and DBRR as in the literature, where what is for
// a crashed member is lost, and LiveDBRR, that of faultdetect, where distances
// are counted in live members once the survivors know of the crashes. That they
// come to know, and fail none of each other meanwhile, is what the tests of
// faultdetect show with its own core: there a suspect is asked before it is
// failed, which this arithmetic leaves out.
package lifetime
