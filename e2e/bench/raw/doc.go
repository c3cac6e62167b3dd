// Raw measures what lies under a channel of ours, as the limit that it can reach:
// the same tests as prog's between two processes, over a plain Unix socket, TCP,
// TLS 1.3 over TCP, or a libp2p stream, direct or through a relay.
//
//	raw -path tls latency:1:2000 bandwidth:1048576:32
//
//	raw, first ◄── one connection ──► raw, second (a child of the first)
//	  │ JSON lines
//
// Messages have no header here: both ends know the items and so the lengths.
package main
