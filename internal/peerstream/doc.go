// Package peerstream sends messages to another peer on one libp2p stream that stays open. It is for protocols that
// continuously send small messages and tolerate the loss of some: heartbeats and Raft.
//
//	Put -> queue -> Run -> stream: Hello, message, message, ...
//	                  |
//	                  | write failed: open a new stream, send once more
//
// Each Writer has a goroutine of its own, so a slow, stopped or unreachable peer delays neither the caller
// of Put nor the messages to other peers.
package peerstream
