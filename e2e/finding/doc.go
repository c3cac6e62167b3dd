// Finding simulates how long it takes to find 64 suitable peers among volunteers who
// come and go, how much is said for that, and how both grow with the network. It
// writes that into docs/networking.md.
//
//	go run ./e2e/finding -worlds 3             a look, to standard output
//	go run ./e2e/finding -out docs             tables and plots
//
// The package discovery/sim says what is simulated. The same seed gives the same
// figures.
package main
