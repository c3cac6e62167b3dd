// Ring passes a token from rank to rank in a ring. Only one message is in transit at any time, so
// the time of a hop is the latency of a message. If a message is lost or duplicated, the final token
// is wrong.
//
//	p2prun -n 4 -r 2 ./examples/ring 1000
//
// The argument is the number of rounds; the default is 100. If the token is wrong, the exit status
// is 1.
package main
