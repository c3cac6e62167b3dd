// Mg is the "multigrid" kernel of the NAS Parallel Benchmarks. It solves Poisson's equation on a
// cube with periodic boundaries. It uses V-cycles over a hierarchy of grids, each twice as coarse as
// the previous grid. Its messages are the faces of boxes: long messages for fine grids and short
// messages for coarse grids.
//
//	p2prun --local 4 -n 4 ./examples/mg -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. The number of ranks must
// be a power of two, as in NPB. If the verification fails, the exit status is 1.
//
// # One V-cycle
//
//	residual                                              correction
//	r 256^3 \                                          / u 256^3  interpolate,
//	         r 128^3 \                      / u 128^3            residual, smooth
//	          restrict \        ...        /
//	                     r 2^3  smooth  u 2^3
//
// Every rank has a box of each grid, surrounded by a layer of its neighbours' points that is updated
// after each change. A grid with fewer points than ranks along an axis is not divided: every rank
// has the whole grid and computes the same values.
package main
