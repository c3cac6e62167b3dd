// Lifetime computes the probability that a failure detector fails before the application (promise
// F3), and writes the results into docs/reliability.md.
//
//	go -C e2e/bench run ./lifetime -sample 200        a quick look, to standard output
//	go -C e2e/bench run ./lifetime -out ../../docs    tables and plots
//
// Package e2e/bench/internal/lifetime describes the computation. The same seed produces the same figures.
package main
