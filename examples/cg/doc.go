// Cg is the "conjugate gradient" kernel of the NAS Parallel Benchmarks. It estimates the smallest
// eigenvalue of a large sparse symmetric matrix by inverse iteration. The linear system of each
// iteration takes 25 steps of the conjugate gradient method. The kernel sends many messages of all
// sizes, from sums of a single number to pieces of vectors.
//
//	p2prun --local 4 -n 4 ./examples/cg -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The number of ranks must
// be a power of two, as in NPB. If the verification fails, the exit status is 1.
//
// # Distribution of the data
//
// The ranks form a grid of rows and columns, with as many columns as rows or twice as many. The
// matrix A is divided in the same way:
//
//	     p0  p1  p2  p3     each column of ranks has a piece of the vector p
//	   +---+---+---+---+
//	w0 | 0 | 1 | 2 | 3 |    each rank multiplies its block of A by its piece of p;
//	   +---+---+---+---+    the sum along a row of ranks is a piece of w = A p
//	w1 | 4 | 5 | 6 | 7 |
//	   +---+---+---+---+
//
// For the next step, every rank needs the piece of w that belongs to its column. For this, it
// exchanges pieces with the rank at its transposed position in the grid.
package main
