// Package words has the words in which a process and its engine speak of messages and
// of calls. It is apart from package engine since a WebAssembly module speaks them too,
// whose engine is that of its host: modules stay small.
package words
