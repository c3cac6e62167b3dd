// Prog is the part of a benchmark that runs as the ranks of a job: it measures
// what its arguments ask for (see package plan) and prints a JSON line for each
// at rank 0.
//
//	p2prun -n 2 ./e2e/bench/prog latency:1:2000 allreduce:1048576:100
//
// With -profile FILE each rank writes a CPU profile into its folder, for p2prun -o
// to collect.
//
// Unlike other programs it reads time by package time: what it measures is never
// sent where it could change what another rank does, except to rank 0, to be
// printed.
package main
