// Package node starts the libp2p host of a peer, and knows what the host learns about itself.
//
//	Config --> New: transports, security, limits of resources, order of dials --> host.Host
//	                                                     |
//	                       Watcher <-- identify ---------+
//	                          |
//	                          +--> kind of address translation, peers of another protocol version
//
// It differs from libp2p's defaults in these points: TCP is dialled before QUIC and before relays
// (ranking.go); the limits let two peers open a stream for each pair of processes of a large job, and a
// laboratory behind one address connect (resources.go); circuits are not counted as connections of the
// relay's address (circuits.go); two observers of an own address suffice; a port that another process uses
// is an error, and ports that the system has chosen stay the same across restarts (ports.go).
package node
