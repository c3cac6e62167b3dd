// Pi computes π as the integral of 4/(1+x²) from 0 to 1: the first program
// that many people write with message passing. Rank 0 tells the others how
// fine to divide the interval (Bcast), each rank integrates its share, and
// Reduce adds the shares up at rank 0.
//
//	p2prun -n 4 -r 2 ./examples/pi 1000000000
//
// The argument is the number of intervals; without it there are ten million.
package main
