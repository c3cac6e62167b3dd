// The command swarm measures staging beside a library's swarm: one origin, behind a
// slow link, brings a file to many peers, through package filetransfer and through
// bitswap of github.com/ipfs/boxo. Both run over the same kind of libp2p hosts in
// this process, whose streams are limited to a rate out and one in for each host, and
// take turns.
//
//	cd e2e/bench/swarm && go run . -peers 16 -mib 256 -rounds 3
//
// It is a module of its own, so that nobody who uses the project downloads IPFS.
package main
