// Heat computes how heat spreads in a square plate whose upper edge is kept at
// 100 degrees and whose other edges at 0, until it hardly changes any more, and
// paints the temperatures into a PNG file.
//
//	p2prun -n 4 -r 2 -o heat.png ./examples/heat
//	p2prun -n 6 -o heat.png ./examples/heat -side 300 -tolerance 0.01
//
// The heat equation u' = ∆u is solved by explicit differences, with the longest
// time step that is stable, h²/4: then the next temperature of a point is the
// mean of its four neighbours' (Jacobi's method).
//
// The plate is cut into blocks, one for each rank, by a Cartesian communicator.
// Around its block a rank has a halo: the points of its neighbours' blocks next
// to it, of which it gets the temperatures anew in each step.
//
//	+--------+--------+       . . . . . .      receive the halo   .  (Irecv)
//	| rank 0 | rank 1 |     . o o o o o o .    send the border    o  (Isend)
//	|        |        |     . o x x x x o .    meanwhile compute  x
//	+--------+--------+     . o x x x x o .    wait
//	| rank 2 | rank 3 |     . o o o o o o .    compute            o
//	+--------+--------+       . . . . . .
//
// So messages travel while the rank computes what needs none of them. Rows are
// contiguous in memory and sent as slices; columns are not, and a vector
// datatype says where their points are.
//
// Whatever the number of ranks, every point is computed from the same numbers in
// the same order: the result is that of one rank to the last bit.
package main
