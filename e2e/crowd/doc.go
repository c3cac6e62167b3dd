// Package crowd measures what a crowd of submitters gets of too few slots, and
// writes that into docs/networking.md.
//
//	go test ./e2e/crowd                               a look, and what must hold
//	go test ./e2e/crowd -all -hours 4 -out ../../docs the tables
//
// Time is virtual, which is why this is a test: package reservation/sim says what
// is simulated. The same seed gives nearly the same figures: what happens at the
// same instant happens in any order.
package crowd
