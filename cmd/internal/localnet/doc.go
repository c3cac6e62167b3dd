// Package localnet runs throw-away peers on this machine for p2prun --local, so
// that a newcomer sees a whole network without installing one.
//
//	p2prun (its own submit-only peer introduces the others)
//	   |-- stdin: one line of settings, then nothing; its end ends the peer
//	   |-- stdout: "ready PEER-ID ADDRESS"
//	   +-- peer: the same program again, in a process group of its own
//
// Each peer is a process of its own with a home of its own and listens on
// 127.0.0.1 only. It ends when p2prun does, however that ends, because its end
// of the stdin pipe then closes, and it removes its home.
package localnet
