// Owner measures how much slower the owner's own work is while all slots of a peer are busy,
// and whether jobs bear it when the owner needs all processors.
//
//	go run ./e2e/bench/owner -for 1m              a look
//	go run ./e2e/bench/owner -for 4m -out docs    on a quiet machine, into docs/benchmarks.md
//
// The work is a build, of the packages go/... of the standard library after an edit of all of them, in
// a session of its own, as in a terminal. In each round it is done in random order:
//
//	alone        nothing else runs
//	a job        as many ranks as there are slots, which compute, at a p2pboot with its defaults
//	niceness N   the same, at a p2pboot that gives way less
//	no peer      as many processes that compute, started by hand, in every fourth round
//
// What is told of the rounds is the median of the ratios within each, and between which values it is with
// a probability of 95 %. Besides the time that the build took, its own processor time is told: what
// that grows by is not a matter of whose turn it is, but of what processors share, such as their caches
// and, of hyperthreads, all that computes.
//
// In the end, for -starve each, one process and then four for each processor compute beside a job,
// which must go on and end as it should: which part of the time it gets is told.
package main
