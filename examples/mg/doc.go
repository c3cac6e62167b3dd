// Mg is the "multigrid" kernel of the NAS Parallel Benchmarks: it solves
// Poisson's equation on a cube whose opposite faces are joined, with V-cycles
// over grids of which each is twice as coarse as the one before. Its messages
// are the faces of boxes, long ones for the fine grids and short ones for the
// coarse.
//
//	p2prun --local 4 -n 4 ./examples/mg -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The
// number of ranks is a power of two, as in NPB. A verification that fails gives
// exit status 1.
//
// # One V-cycle
//
//	residual                                              correction
//	r 256^3 \                                          / u 256^3  interpolate,
//	         r 128^3 \                      / u 128^3            residual, smooth
//	          restrict \        ...        /
//	                     r 2^3  smooth  u 2^3
//
// Every rank has a box of each grid with a layer of its neighbours' points
// around it, which is brought up to date after each change. Grids that have
// fewer points along an axis than there are ranks are not divided: every rank
// has all of them and computes the same.
package main
