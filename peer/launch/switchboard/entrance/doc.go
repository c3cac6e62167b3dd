// Package entrance accepts and makes direct connections between peers, for their processes.
//
// The connecting peer sends one half of a token that it has passed over the peers' authenticated stream. It
// expects the other half in reply, because the address may belong to another machine. The connecting peer
// chooses the token. No other peer can therefore make it send bytes that another service would accept, or make
// it mistake another service for an entrance. A token is valid once. A stranger costs one connection for a
// moment, and the number of such connections is bounded.
//
//	asking peer                       entrance
//	   |== stream: Open, Answer ======|  NewToken: token; Expect, Addresses
//	   |-- TCP: first half ---------->|  Connect
//	   |<---------------- last half --|
//	   |                              |  both hand the connection to their processes
//
// The package does not protect the data on the connection. The processes speak TLS on it.
package entrance
