// Package words defines the types that a process and its engine exchange about messages and calls.
// It is separate from package engine because a WebAssembly module, whose engine is in the host,
// uses it too, and stays small that way.
package words
