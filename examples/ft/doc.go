// Ft is the "Fourier transform" kernel of the NAS Parallel Benchmarks: it
// solves the heat equation in a box by a three-dimensional fast Fourier
// transform, a multiplication for each time step, and a transform back. To
// transform along the third axis all data change hands, so ft shows what the
// machines can do when everybody sends to everybody.
//
//	p2prun --local 4 -n 4 ./examples/ft -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The
// number of ranks is a power of two, as in NPB, and at most the points along y
// and z. A verification that fails gives exit status 1.
//
// # Who has what
//
//	in space: slabs across z          of frequencies: slabs across y
//	[z of a rank][y][x]               [z][y of a rank][x]
//	   +-----------+                     +---+---+---+---+
//	z  |  rank 3   |                     |   |   |   |   |
//	^  +-----------+      Alltoall       |   |   |   |   |
//	|  |  rank 2   |  <-------------->   | 0 | 1 | 2 | 3 |
//	|  +-----------+                     |   |   |   |   |
//	|     ...                            +---+---+---+---+
//	+------> y
//	x and y are whole here            x and z are whole here
package main
