// Nbody simulates bodies under their mutual gravity: two rotating balls of stars that fall through
// each other. It reports the conservation of energy, and writes the final positions of the bodies.
//
//	p2prun -n 4 -r 2 ./examples/nbody
//	p2prun -n 4 -o 'nbody.*' ./examples/nbody -bodies 4000 -steps 500 -png nbody.png -csv nbody.csv
//
// Every body attracts every other body, so each rank needs the positions of all bodies in each step.
// A rank keeps its own bodies, and blocks of bodies are passed around a ring of ranks. While a rank
// computes with one block, it sends that block to the next rank and receives another block from the
// previous rank. This is a systolic pipeline: each rank sends n-1 messages per step, and needs
// memory for two blocks instead of all blocks.
//
//	    rank 0         rank 1         rank 2         rank 3
//	   bodies A       bodies B       bodies C       bodies D     stay
//	+-> block D -----> block A -----> block B -----> block C -+  move on
//	+---------------------------------------------------------+
//
// Positions and velocities are advanced in turns (leapfrog, in its kick-drift-kick form). This keeps
// the energy from drifting, although each step has an error. Close encounters are softened: two
// bodies attract each other as if they were never closer than a certain length.
//
// The program makes checkpoints, because a simulation takes many steps. A replica that replaces a
// lost replica resumes from the last checkpoint, and not from the beginning.
//
// The bodies depend only on -seed, and not on the number of ranks. In every run with the same number
// of ranks, the result is the same to the last bit. With a different number of ranks, the forces are
// added in a different order and the last digits differ. In a long simulation these differences
// grow.
package main
