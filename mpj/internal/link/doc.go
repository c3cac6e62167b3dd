// Package link is a process's end of the control socket to its peer (package proclink). It joins
// the job, opens channels, and informs the engine of views and of channels that other processes
// open.
//
//	peer ===== control socket =====> Link -- Accept, View --> engine
//	                                      <---- Open ----------
//
// One goroutine reads the control socket. It answers pings at once, even while the program
// computes, so that the peer's liveness check distinguishes a busy process from a dead one. If the
// control socket ends before the peer's goodbye, the peer is gone, and with it the enforcement of
// the process's limits. The process then exits.
package link
