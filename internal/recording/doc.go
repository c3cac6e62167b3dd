// Package recording is for fuzz tests: a stream on which another peer has said all that it
// will ever say, in place of one over a network.
//
//	Of(messages) ---> bytes, changed by the fuzzer ---> New(from, bytes) ---> what reads streams
package recording
