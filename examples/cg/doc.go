// Cg is the "conjugate gradient" kernel of the NAS Parallel Benchmarks: it
// estimates the smallest eigenvalue of a large sparse symmetric matrix by
// inverse iteration, and solves the linear system of each step with 25 steps
// of the conjugate gradient method. Its messages are many and of all sizes:
// sums of a single number, and pieces of vectors.
//
//	p2prun --local 4 -n 4 ./examples/cg -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The
// number of ranks is a power of two, as in NPB. A verification that fails gives
// exit status 1.
//
// # Who has what
//
// The ranks stand in a grid of rows and columns, with as many columns as rows or
// twice as many. The matrix A is cut likewise:
//
//	     p0  p1  p2  p3     a column of ranks has a piece of the vector p
//	   +---+---+---+---+
//	w0 | 0 | 1 | 2 | 3 |    each multiplies its block of A by its piece of p;
//	   +---+---+---+---+    the sum along a row of ranks is a piece of w = A p
//	w1 | 4 | 5 | 6 | 7 |
//	   +---+---+---+---+
//
// For the next step every rank needs the piece of w that belongs with its
// column: it swaps with the rank that stands where it would stand if the
// matrix were transposed.
package main
