// Mandelbrot paints the Mandelbrot set, or a part of it, into a PNG file.
//
//	p2prun -n 4 -r 2 -o mandelbrot.png ./examples/mandelbrot
//	p2prun -n 4 -o mandelbrot.png ./examples/mandelbrot -x -0.7436 -y 0.1318 -span 0.0012 -limit 5000
//
// It is a task farm. A row of pixels takes from no time at all to very long,
// and nobody knows beforehand, nor how fast each machine is. So rank 0 does not
// divide the rows but deals them out: whoever hands in a row is given the next.
// It receives from AnySource, so a slow rank keeps nobody waiting.
//
//	          row 7, finished                 row 9
//	rank 1  ------------------>          ------------------>  rank 1
//	rank 2  ------------------>  rank 0  ------------------>  rank 2
//	rank 3  ------------------>          ------------------>  rank 3
//	          from AnySource               to who handed in
//
// Who computes which row is different in each run; the picture never is. With
// replicas, the master of rank 0 decides whose row came first and its replicas
// follow, so a new master deals on where the last one stopped.
//
// Rank 0 computes nothing while there are other ranks. It reports on standard
// error how far they have come.
package main
