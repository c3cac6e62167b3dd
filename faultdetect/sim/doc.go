// Package sim runs a group of failure detectors over a network at virtual time,
// for tests and measurements.
//
//	           Tick, Receive, Report
//	World ---------------------------> Detector 0..n-1
//	  ^  events by time                   |
//	  +---- messages, delayed or lost ----+
//
// A World does what it does for a seed: the same seed and the same settings give
// the same events. What it leaves out is the machine: members take no time to do
// anything, messages neither queue nor wait for each other.
package sim
