// Package link is a process's end of the line to its peer (package proclink):
// it joins the job, opens channels, and tells the engine of views and of
// channels that others open.
//
//	peer ===== line =====> Link -- Accept, View --> engine
//	                         <---- Open -----------
//
// One goroutine reads the line. It answers a ping at once, whatever the
// program computes, so that check-alive tells a busy process from one that is
// gone. When the line ends before the peer has said goodbye, the peer is gone, and with it
// everything that keeps the process within its limits: the process ends.
package link
