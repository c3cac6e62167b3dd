// The command swarm compares staging with the swarm of a library. One origin, behind a slow link,
// distributes a file to many peers, through package filetransfer and through bitswap of
// github.com/ipfs/boxo. Both take turns on the same kind of libp2p hosts in this process. Each host
// limits the total rate of its streams in each direction.
//
//	cd e2e/bench/swarm && go run . -peers 16 -mib 256 -rounds 3
//
// It is a separate module, so that users of the project do not download IPFS.
package main
