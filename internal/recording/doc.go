// Package recording provides, for fuzz tests, a stream that contains everything a remote peer will ever
// send, in place of a network stream.
//
//	Of(messages) ---> bytes, changed by the fuzzer ---> New(from, bytes) ---> code that reads streams
package recording
