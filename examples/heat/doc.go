// Heat computes how heat spreads in a square plate. The upper edge of the plate is kept at 100
// degrees and the other edges at 0. The computation ends when the temperatures hardly change any
// more. Heat then paints them into a PNG file.
//
//	p2prun -n 4 -r 2 -o heat.png ./examples/heat
//	p2prun -n 6 -o heat.png ./examples/heat -side 300 -tolerance 0.01
//
// It solves the heat equation u' = ∆u by explicit differences, with the longest stable time step,
// h²/4. Then the next temperature of a point is the mean of the temperatures of its four neighbours
// (Jacobi's method).
//
// A Cartesian communicator divides the plate into blocks, one for each rank. A rank's block has a
// halo: the adjacent points of the neighbouring blocks, whose temperatures the rank receives in
// each step.
//
//	+--------+--------+       . . . . . .      receive the halo   .  (Irecv)
//	| rank 0 | rank 1 |     . o o o o o o .    send the border    o  (Isend)
//	|        |        |     . o x x x x o .    meanwhile compute  x
//	+--------+--------+     . o x x x x o .    wait
//	| rank 2 | rank 3 |     . o o o o o o .    compute            o
//	+--------+--------+       . . . . . .
//
// So messages travel while the rank computes the cells that do not need them. Rows are contiguous
// in memory and sent as slices. Columns are not contiguous, so a vector datatype describes where
// their points are.
//
// For every number of ranks, each point is computed from the same numbers in the same order. So the
// result equals that of one rank to the last bit.
package main
