// Mandelbrot paints the Mandelbrot set, or a part of it, into a PNG file.
//
//	p2prun -n 4 -r 2 -o mandelbrot.png ./examples/mandelbrot
//	p2prun -n 4 -o mandelbrot.png ./examples/mandelbrot -x -0.7436 -y 0.1318 -span 0.0012 -limit 5000
//
// It is a task farm. The time for a row of pixels varies widely and cannot be predicted, and
// neither can the speed of each machine. So rank 0 does not divide the rows in advance. It assigns
// the next row to each rank that returns one. It receives from AnySource, so a slow rank delays no
// other.
//
//	          row 7, finished                 row 9
//	rank 1  ------------------>          ------------------>  rank 1
//	rank 2  ------------------>  rank 0  ------------------>  rank 2
//	rank 3  ------------------>          ------------------>  rank 3
//	          from AnySource               to the sender of the row
//
// The assignment of rows to ranks differs in each run; the picture does not. With replicas, the
// master of rank 0 decides which rank's row came first, and the other replicas follow. So a new
// master continues where the last one stopped.
//
// Rank 0 computes rows only when it is the only rank. It reports the progress on standard error.
package main
