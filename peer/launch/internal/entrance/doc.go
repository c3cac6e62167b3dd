// Package entrance is where other peers connect directly, for the processes of both.
//
// Whoever connects shows half of the token that he has sent over the peers'
// authenticated stream, and is shown the rest of it in return: an address may
// well be that of another machine. He who connects has drawn the token, so that
// nobody has him send what another service takes for its own, or takes what one
// says for an entrance. A token opens once. Strangers cost a
// connection for a moment, and there are never many.
//
//	asking peer                       entrance
//	   |== stream: Open, Answer ======|  NewToken: token; Expect, Addresses
//	   |-- TCP: first half ---------->|  Connect
//	   |<---------------- last half --|
//	   |                              |  both hand the connection to their processes
//
// Not promised: that nobody else reads or changes what goes over the connection. The processes
// speak TLS on it.
package entrance
