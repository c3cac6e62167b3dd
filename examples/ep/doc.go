// Ep is the "embarrassingly parallel" kernel of the NAS Parallel Benchmarks. It generates pairs of
// Gaussian random numbers, counts them in square annuli, and compares their sums with those that NPB
// publishes. The ranks compute independently until they combine their results. So ep shows the speed
// of the machines and the cost of the loss of a machine.
//
//	p2prun -n 4 -r 2 ./examples/ep W
//
// The argument is a class, S (the default, 2^24 pairs), W (2^25), A (2^28) or B (2^30); -times adds
// the time spent in messages. With -sequential the program runs by itself, without a world, for
// comparison. Rank 0 reports its progress on standard error. The sums are the same, to the last
// bit, for every number of ranks. If the verification fails, the exit status is 1.
package main
