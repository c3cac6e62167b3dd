// Package outbox keeps what a process has written until the user has got it.
//
//	pipe --Append--> tail | record record record --Next--> submitter
//	                        ^                                 |
//	                        +------- Acknowledge(count) ------+
//
// A record is a whole line, or a piece of exactly MaxRecord bytes of a longer
// one. Where records end depends on the bytes alone and not on how the pipe
// delivered them, so all replicas of a rank number their records alike, and a
// count says what the user has got from any of them (promise R6).
//
// Every replica fills its Box; only the one that speaks for its rank sends from
// it. When another replica takes over, it sends from the first record that was
// not acknowledged: nothing is lost, and what comes twice is known by number.
//
// A Box holds about Limit bytes. Then its owner stops reading the pipe, and the
// program waits in its write call: a program that prints faster than the user's
// terminal takes it is slowed down rather than buffered without bound.
package outbox
