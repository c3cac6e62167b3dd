// Package outbox keeps a process's output until the user has received it.
//
//	pipe --Append--> tail | record record record --Next--> submitter
//	                        ^                                 |
//	                        +------- Acknowledge(count) ------+
//
// A record is a whole line, or a piece of exactly job.MaxRecord bytes of a longer line. The boundaries of
// records depend only on the bytes, and not on how the pipe delivered them. All replicas of a rank
// therefore number their records alike, and a count states what the user has received from any of them
// (promise R6).
//
// Every replica fills its Box; only the output leader of the rank (view.OutputLeader) sends from it. A new output
// leader sends from the first record that was not acknowledged. Nothing is lost, and duplicates are
// recognized by their numbers.
//
// A Box holds about Limit bytes. When it is full, its owner stops reading the pipe, and the program blocks
// in its write call. A program that prints faster than the user's terminal is thus slowed down, and memory
// stays bounded.
package outbox
