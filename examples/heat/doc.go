// Heat simulates the conduction of heat in a square plate. The upper edge of the plate is kept at
// 100 degrees and the other edges at 0. The computation ends when no temperature changes by more
// than the tolerance. Heat then writes a picture of the plate to a PNG file.
//
//	p2prun -n 4 -r 2 -o heat.png ./examples/heat
//	p2prun -n 6 -o heat.png ./examples/heat -side 300 -tolerance 0.01
//
// It solves the heat equation u' = ∆u by explicit differences, with the longest stable time step,
// h²/4. With this step, the next temperature of a point is the mean of the temperatures of its four
// neighbours (Jacobi's method).
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
// So messages are in transit while the rank computes the cells that do not need them. Rows are
// contiguous in memory and sent as slices. Columns are not contiguous, so a vector datatype
// describes the positions of their points.
//
// For every number of ranks, each point is computed from the same numbers in the same order. So the
// result is the same, to the last bit, as with one rank.
package main
