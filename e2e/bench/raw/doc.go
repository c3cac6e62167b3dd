// Raw measures the connections on which the project's channels are built, as their upper limit. It
// runs the tests of prog between two processes, over a plain Unix socket, TCP, TLS 1.3 over TCP, or
// a libp2p stream, direct or through a relay.
//
//	raw -path tls latency:1:2000 bandwidth:1048576:32
//
//	raw, first ◄── one connection ──► raw, second (a child of the first)
//	  │ JSON lines
//
// Messages have no header here: both ends know the items and therefore the lengths.
package main
