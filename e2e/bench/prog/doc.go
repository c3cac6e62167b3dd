// Prog is the part of a benchmark that runs as the ranks of a job. It measures the items in its
// arguments (see package plan) and prints a JSON line for each at rank 0.
//
//	p2prun -n 2 ./e2e/bench/prog latency:1:2000 allreduce:1048576:100
//
// With -profile FILE, each rank writes a CPU profile into its working directory, for p2prun -o to
// collect.
//
// Unlike other programs, Prog reads the time with package time. Its measurements are sent only to
// rank 0, to be printed, and never affect the behaviour of another rank.
package main
