// Ring passes a token from rank to rank, round and round. Only one message is
// on its way at any time, so the time for a hop is the latency of a message,
// and whatever is lost or comes twice makes the token wrong.
//
//	p2prun -n 4 -r 2 ./examples/ring 1000
//
// The argument is the number of rounds; without it there are 100. A wrong
// token gives exit status 1.
package main
