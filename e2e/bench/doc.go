// Bench compares mpj with other message-passing libraries and with the connections
// that lie under it, all on this machine and interleaved.
//
//	go run ./e2e/bench -quick                  a look, in a minute
//	go run ./e2e/bench -rounds 5 -out docs     all, into docs/benchmarks.md
//	go run ./e2e/bench -only 'mpj|TLS' -quick  those whose name matches
//
// In each round every contender runs once, in an order that a printed seed decides:
//
//	round ──► shuffle ──► contender: p2prun, mpirun or a pair of processes
//	                        └── JSON lines ──► report: medians, ratios, plots
//
// An interrupt ends the measuring and writes what there is. Jobs of ours run on p2pboot processes that it boots on loopback. A library that
// is not installed is left out, and so is whoever has failed twice. The
// package plan says what is measured; contenders.go says by whom.
package main
