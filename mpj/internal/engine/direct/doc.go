// Package direct is the transport of a process without replicas. It sends from the program's buffer and
// receives into the program's buffer where possible.
//
// # Ways of a message
//
// Messages travel in one of two ways:
//
//	eager       Data, with the payload: into the buffer of a posted receive, if any,
//	            otherwise into a buffer of the engine until one is posted
//	rendezvous  Announce ->  <- Clear, when a receive has matched  Body ->
//	            directly from the sender's buffer into the receiver's
//	            (or the receiver reads it itself: see reading.go and fetch.go)
//
// Long and synchronous messages use rendezvous. So do messages for which the sender has no credit
// left; the credit bounds the memory of the receiver. On a channel that may break, messages of
// medium length are also sent eagerly, but from the sender's buffer. Their sends end when the
// messages are acknowledged. The reason is that a round trip on such a channel costs more than on a
// ring. All frames except Ack are numbered for each pair of processes and kept until acknowledged,
// unless the channel is a ring, which cannot break. So the sender can repeat them on a new channel,
// and the receiver can discard duplicates.
package direct
