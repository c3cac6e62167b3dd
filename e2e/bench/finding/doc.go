// Finding simulates the search for 64 suitable peers among volunteers that come and go. It measures
// the time and the number of messages, and how both grow with the network. It writes the results
// into docs/networking.md.
//
//	go -C e2e/bench run ./finding -worlds 3          a quick look, to standard output
//	go -C e2e/bench run ./finding -out ../../docs    tables and plots
//
// Package e2e/bench/finding/sim describes the simulation. The same seed produces the same figures.
package main
