// Package crowd measures how a crowd of submitters shares too few slots, and
// writes the results into docs/networking.md.
//
//	go test ./e2e/crowd                                a quick look, and the checks
//	go test ./e2e/crowd -all -hours 4 -out ../../docs  the tables
//
// Time is virtual, which is why this is a test. Package e2e/crowd/sim describes the simulation.
// The same seed produces nearly the same figures: simultaneous events happen in any order.
package crowd
