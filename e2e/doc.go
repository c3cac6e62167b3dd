// Package e2e checks the whole system with real processes: p2pboot, p2prun and
// p2phalt as a user starts them, real programs, SIGKILL and SIGSTOP. Traffic
// stays on loopback. Every process has a bound in time, and each test ends with
// a look for what a job may have left: slots, processes, scratch files.
//
//	go test ./e2e/            all of it
//	go test ./e2e/ -run Kill  only what kills
//
// The tests build the commands and the programs once, into a temporary folder.
package e2e
