// Package stack starts the network stack of a peer: its libp2p host, and the services that make the host
// reachable and watch its connections.
//
//	dial filter, port mapping --> node.New --> host --> loopback --> membership --> hole punching
//	                                                                     --> version check --> relays
//
// The services start in this order. The caller closes them in reverse order.
package stack
