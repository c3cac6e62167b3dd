// Package plan says what is measured, how often, and how a result is written.
// Every contender, in Go or in C, gets the same items on its command line and
// answers with one JSON line for each:
//
//	bench ── latency:1:2000 latency:4:2000 … ──► contender, n processes
//	      ◄── {"test":"latency","bytes":1,"seconds":3.6e-07} … ── rank 0
//
// A contender does Count operations in up to Batches batches of equal length,
// after a tenth as many to warm up, and reports the median batch, divided by its
// operations: what else the machine does in between spoils a batch and not the
// result. The time of a batch is that of the rank that needs longest.
package plan
