// Package machine measures the machine that a peer runs on: the speed of a processor, the load, and the
// memory, disk, files and processes that the system grants to this process.
//
//	/proc, statfs, rlimits, control groups, a small computation --> figures, for the offer and the doctor
//
// Systems other than Linux report only the speed.
package machine
