// Pi computes π as the integral of 4/(1+x²) from 0 to 1, a common first message-passing program.
// Rank 0 broadcasts the number of intervals (Bcast), each rank integrates its share, and Reduce sums
// the shares at rank 0.
//
//	p2prun -n 4 -r 2 ./examples/pi 1000000000
//
// The argument is the number of intervals; the default is ten million.
package main
