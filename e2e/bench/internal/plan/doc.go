// Package plan defines the measurements, their numbers of repetitions, and the format of results.
// Every contender, in Go or in C, gets the same items on its command line and answers with one JSON
// line for each:
//
//	bench ── latency:1:2000 latency:4:2000 … ──► contender, n processes
//	      ◄── {"test":"latency","bytes":1,"seconds":3.6e-07} … ── rank 0
//
// A contender performs Count operations in up to Batches batches of equal length, after a tenth as many for
// warming up. It reports the time of the median batch, divided by its operations. Other activity on the machine
// therefore affects single batches, but not the result. The time of a batch is the time of its slowest rank.
package plan
