// Mandelbrot writes a picture of the Mandelbrot set, or of a part of it, to a PNG file.
//
//	p2prun -n 4 -r 2 -o mandelbrot.png ./examples/mandelbrot
//	p2prun -n 4 -o mandelbrot.png ./examples/mandelbrot -x -0.7436 -y 0.1318 -span 0.0012 -limit 5000
//
// The program is a task farm. The time for a row of pixels varies widely and cannot be predicted,
// and neither can the speed of each machine. So rank 0 does not divide the rows in advance, but
// assigns the next row to each rank that returns a row. Rank 0 receives from AnySource, so a slow
// rank does not delay the others.
//
//	          row 7, finished                 row 9
//	rank 1  ------------------>          ------------------>  rank 1
//	rank 2  ------------------>  rank 0  ------------------>  rank 2
//	rank 3  ------------------>          ------------------>  rank 3
//	          from AnySource               to the sender of the row
//
// The assignment of rows to ranks differs between runs, but the picture does not. With replicas, the
// master of rank 0 decides the order in which rows arrived, and the other replicas use the same
// order. So a new master continues where the last master stopped.
//
// Rank 0 computes rows only when it is the only rank. It reports its progress on standard error.
package main
