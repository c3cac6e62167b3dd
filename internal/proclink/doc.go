// Package proclink is the control socket between a peer and one process of a job on the same machine: an
// inherited Unix socket for small control messages. Some of them carry an open descriptor.
//
//	process                                peer
//	   |-- hello ------------------------->|  version checked
//	   |<-- setup{self, view} + board fd --|
//	   |-- init{key} --------------------->|  required from every process
//	   |<---------- start{view, places} ---|  mpj.Init returns
//	   |-- open{to} ---------------------->|
//	   |<-------- channel{to, kind} + fd --|  or refused{to, text}
//	   |<------- accept{from, kind} + fd --|  another process opened a channel
//	   |<------------------- view{view} ---|
//	   |<------------------------ ping ----|  check-alive
//	   |-- pong -------------------------->|
//	   |-- diverged{divergence} ---------->|  replicas of a rank diverged
//	   |-- healed{count, bytes} ---------->|  a new replica has caught up
//	   |-- unkept{text, lapsed} ---------->|  cannot bring a new replica up to date
//	   |-- finalized{sums} --------------->|  sums of everything that it has sent
//	   |<------------------------ bye -----|
//
// The peer connects processes but does not forward their messages: these go through the descriptors, never through
// this socket. The process may be hostile. So messages are bounded, and the peer closes the socket after a message
// that it cannot decode.
package proclink
