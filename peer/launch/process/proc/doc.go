// Package proc reports what processes use and do, as read from /proc: their memory, threads, open files,
// deleted files and processor time, and whether they are stopped. The caller passes the process IDs.
//
//	Inspect                                   threads, open files, bytes on disk of deleted files
//	MemoryOf ── Parts                         exact memory, which takes time; shared memory counts once
//	TouchedBy                                 approximate memory, which is fast
//	CPUTime, CPUTimes, CPUTimesOfChildren     processor time
//	CPUStatsOf ── CPUStats.WaitSince, Starved processor time; time spent runnable but not running
//	Stopped ── Resume                         processes that a signal has stopped
//
// The inspected processes do not cooperate. They fork, exit, share and map memory and move files meanwhile,
// and they may be hostile. Inspect reports processes that hide files from this peer.
//
// A process ID may have been reused before it is used here; the package does not detect that. On systems
// without /proc, all results are zero, and no process is resumed.
package proc
