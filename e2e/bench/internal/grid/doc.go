// Package grid runs real peers on loopback on which a benchmark can run jobs. It builds the
// commands, boots p2pboot processes that know each other, and runs p2prun.
//
//	Build ──► folder with p2pboot, p2prun, programs
//	Boot  ──► peer 0 ◄── peers 1, 2, … (peer 0 introduces them, or relays as well)
//	Run   ──► p2prun --home of peer 0 ──► ranks on the peers
//
// All its files are in one temporary directory. Everything ends with Close, or with the process
// that started it.
package grid
