// Ep is the "embarrassingly parallel" kernel of the NAS Parallel Benchmarks:
// it makes pairs of Gaussian random numbers, counts them in square annuli, and
// compares their sums with those that NPB publishes. The ranks work alone
// until they put their results together, so ep shows what the machines can do
// and what a lost one costs.
//
//	p2prun -n 4 -r 2 ./examples/ep W
//
// The argument is a class, S (the default, 2^24 pairs), W (2^25), A (2^28) or
// B (2^30); -times adds the time spent in messages. With -sequential it runs by
// itself, without a world, for comparison. Rank 0 reports on standard error how far it has come. The sums are
// the same, to the last bit, for every number of ranks. A verification that
// fails gives exit status 1.
package main
