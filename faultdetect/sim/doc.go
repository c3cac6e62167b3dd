// Package sim runs a group of failure detectors over a simulated network in virtual time, for tests and
// measurements.
//
//	           Tick, Receive, Report
//	World ---------------------------> Detector 0..n-1
//	  ^  events by time                   |
//	  +---- messages, delayed or lost ----+
//
// A World is deterministic: equal seeds and settings lead to equal events. It does not model the machine:
// members need no time for processing, and messages neither queue nor delay each other.
package sim
