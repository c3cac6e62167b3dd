// Owner measures how much the owner's own work slows down while all slots of a peer are busy. It
// also checks that jobs survive while the owner needs all processors.
//
//	go -C e2e/bench run ./owner -for 1m                    a quick look
//	go -C e2e/bench run ./owner -for 4m -out ../../docs    on a quiet machine, into docs/benchmarks.md
//
// The work is a build of the packages go/... of the standard library, as after an edit of all of them. It runs
// in its own session, as in a terminal. In each round, the build runs once under each of these loads, in random
// order:
//
//	alone        nothing else runs
//	a job        as many ranks as there are slots, which compute, at a p2pboot with its defaults
//	niceness N   the same, at a p2pboot whose jobs have this niceness
//	no peer      as many computing processes, started by hand, in every fourth round
//
// The tables show the median of the ratios within each round, with its 95 % confidence interval. They show the
// duration of the build and also its own processor time. An increase of the processor time is not due to
// scheduling. The cause is shared parts of the processors, such as caches and, for hyperthreads, all execution
// units.
//
// At the end, for -starve each, one process and then four per processor compute beside a job. The
// job must continue and end normally, and the table shows its share of the processor time.
package main
