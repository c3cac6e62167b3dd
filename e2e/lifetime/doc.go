// Lifetime computes the probability that a failure detector fails before the
// application (promise F3), and writes it into docs/reliability.md.
//
//	go run ./e2e/lifetime -sample 200          a look, to standard output
//	go run ./e2e/lifetime -out docs            tables and plots
//
// The package faultdetect/lifetime says what is computed. The same seed gives the
// same figures.
package main
