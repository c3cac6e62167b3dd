// Ft is the "Fourier transform" kernel of the NAS Parallel Benchmarks. It solves the heat equation
// in a box by a three-dimensional fast Fourier transform, a multiplication for each time step, and
// an inverse transform. The transform along the third axis redistributes all data. So ft shows the
// performance of all-to-all communication.
//
//	p2prun --local 4 -n 4 ./examples/ft -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The number of ranks must
// be a power of two, as in NPB, and at most the number of points along y and along z. If the
// verification fails, the exit status is 1.
//
// # Distribution of the data
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
