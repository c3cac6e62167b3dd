// Replicas measures the cost of replicas without failures, and how long a rank is silent when its
// master is killed.
//
//	go -C e2e/bench run ./replicas                                         a quick look, in about a minute
//	go -C e2e/bench run ./replicas -for 80s -samples FILE                  a part; later runs append to FILE
//	go -C e2e/bench run ./replicas -for 0 -samples FILE -out ../../docs    tables of all samples
//
// Everything runs on peers with one slot each, which the command boots on loopback:
//
//	cost       each round runs every program with r=1, twice at once with r=1, and
//	           with r=2, in random order
//	takeover   p2prun --json ──► beat, n=5, r=2 ──► kill the master of 1, 2, 3, 4
//	           new master: the view that names it, at the submitter
//	           first message: the end of the silence, at rank 0
package main
