// Package localnet runs throw-away peers on this machine for p2prun --local, so that a newcomer can try a
// whole network without installing one.
//
//	p2prun (its own submit-only peer introduces the others)
//	   |-- stdin: one line of settings, then nothing; EOF ends the peer
//	   |-- stdout: "ready PEER-ID ADDRESS"
//	   +-- peer: the same program again, in a process group of its own
//
// Each peer is a process with its own home and listens only on 127.0.0.1. A peer ends when p2prun ends for any
// reason, because the stdin pipe is then closed. Before it ends, the peer removes its home.
package localnet
