// Package peerstream sends messages to another peer on one libp2p stream that stays open. It is for protocols
// that often send small messages and tolerate the loss of some: heartbeats and Raft.
//
//	Put -> queue -> Run -> stream: Hello, message, message, ...
//	                  |
//	                  | if a write fails: open a new stream, send the message again
//
// The caller runs each Writer in a goroutine of its own. So a slow, stopped or unreachable peer delays neither
// the callers of Put nor the messages to other peers.
package peerstream
