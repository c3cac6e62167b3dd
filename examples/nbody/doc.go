// Nbody moves bodies under the gravity of all others: two rotating balls of
// stars that fall through each other. It reports how well the energy was kept,
// and writes where the bodies are in the end.
//
//	p2prun -n 4 -r 2 ./examples/nbody
//	p2prun -n 4 -o 'nbody.*' ./examples/nbody -bodies 4000 -steps 500 -png nbody.png -csv nbody.csv
//
// Every body pulls at every other one, so each rank needs the positions of all,
// for a moment. They go round in a ring: a rank keeps its own bodies, and blocks
// of the others' come by and go on. While it computes with one block it sends it
// to the next rank already, and receives the following one from the rank before.
// This is a systolic pipeline: n-1 messages of a rank in a step, and memory for
// two blocks instead of all.
//
//	    rank 0         rank 1         rank 2         rank 3
//	   bodies A       bodies B       bodies C       bodies D     stay
//	+-> block D -----> block A -----> block B -----> block C -+  go round
//	+---------------------------------------------------------+
//
// Positions and velocities take turns in being advanced (leapfrog, in its
// kick-drift-kick form), which keeps the energy from drifting away although each
// step has an error. Close encounters are softened: two bodies attract each
// other as if they were never nearer than a certain length.
//
// The steps go on for long, and so there are checkpoints: a replica that takes the
// place of a lost one goes on from the last, and not from the beginning.
//
// The bodies depend on -seed alone and not on the number of ranks. In every run
// with as many ranks the result is the same to the last bit; with another number
// the forces are added in another order, and the last digits differ, which a
// long simulation makes visible.
package main
