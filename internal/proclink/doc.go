// Package proclink is the line between a peer and one process of a job on the
// same machine: an inherited Unix socket that carries small control messages
// and, with some of them, an open descriptor.
//
//	process                                peer
//	   |-- hello ------------------------->|  version checked
//	   |<-- setup{self, view} + board fd --|
//	   |-- init{key} --------------------->|  every process must say so
//	   |<---------- start{view, places} ---|  mpj.Init returns
//	   |-- open{to} ---------------------->|
//	   |<-------- channel{to, kind} + fd --|  or refused{to, text}
//	   |<------- accept{from, kind} + fd --|  somebody opened a channel to us
//	   |<------------------- view{view} ---|
//	   |<------------------------ ping ----|  check-alive
//	   |-- pong -------------------------->|
//	   |-- diverged{divergence} ---------->|  replicas have not done the same
//	   |-- healed{count, bytes} ---------->|  who has joined does what its rank does
//	   |-- unkept{text, lapsed} ---------->|  cannot bring a new replica up to date
//	   |-- finalized{sums} --------------->|  what it has sent in all
//	   |<------------------------ bye -----|
//
// The peer is the switchboard, not the wire: the program's messages go through
// the descriptors, never through this line. The process may be hostile to its
// peer: messages are bounded, and one that cannot be decoded ends the line.
package proclink
