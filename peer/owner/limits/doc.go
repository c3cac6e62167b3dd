// Package limits defines the resource limits for other users' processes on a machine, and decides whether a
// process exceeds them. It is pure: package launch measures usage and ends processes.
//
//	configuration ── Default, With ──> Grant ── Min with that of the submitter's class ──> Grant of a job
//	                                                                                        │
//	Usage, measured ────────────────────────────────────────────────────> Exceeded ──> Excess, reported to the user
//
// A limit of a slot applies to one process of a job, including all its child processes. A limit of a job
// applies to all its processes on this machine together. A process that exceeds memory, disk, processes,
// files or time is ended. CPU and upload cannot be exceeded, because excessive use is delayed.
package limits
