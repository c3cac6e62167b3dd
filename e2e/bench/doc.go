// Bench compares mpj with other message-passing libraries and with the underlying connections. All
// contenders run on this machine, interleaved.
//
//	go -C e2e/bench run . -quick                       a quick look, in a minute
//	go -C e2e/bench run . -rounds 5 -out ../../docs    all, into docs/benchmarks.md
//	go -C e2e/bench run . -only 'mpj|TLS' -quick       those whose name matches
//
// In each round every contender runs once, in an order that a printed seed determines:
//
//	round ──► shuffle ──► contender: p2prun, mpirun or a pair of processes
//	                        └── JSON lines ──► report: medians, ratios, plots
//
// An interrupt ends the measurement and writes the results so far. The project's own jobs run on p2pboot
// processes that bench boots on loopback. Bench omits libraries that are not installed, and contenders that have
// failed twice. Package plan defines the measurements, and contenders.go lists the contenders.
//
// Bench and the commands below it are a separate module, so that users of the project do not download the
// modules that only measurements and plots need.
package main
