// Owner measures how much slower the owner's own work is while all slots of a peer are busy,
// and whether jobs bear it when the owner needs all processors.
//
//	go run ./e2e/bench/owner              a look, in two minutes
//	go run ./e2e/bench/owner -rounds 5    on a quiet machine
//
// The work is a build, go build -a of a small command with an empty cache, in a session of
// its own, as in a terminal. In each round it is done in random order:
//
//	alone     nothing else runs
//	a job     as many ranks as there are slots, which compute, at a p2pboot with its defaults
//	no peer   as many processes that compute, started by hand
//
// In the end, for -starve each, one process and then four for each processor compute beside a job,
// which must go on and end as it should: which part of the time it gets is told. That depends less
// on what else the machine does than the time of a build.
package main
