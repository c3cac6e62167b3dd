// Package node starts the libp2p host of a peer. A Watcher learns from the hosts that identify themselves: the
// addresses at which they observe this peer, and their versions of the protocol.
//
//	Config --> New: transports, security, limits of resources, order of dials --> host.Host
//	                                                     |
//	                       Watcher <-- identify ---------+
//	                          |
//	                          +--> kind of address translation, peers of another protocol version
//
// The host differs from one with libp2p's defaults in these points:
//
//   - It dials TCP addresses first, then QUIC addresses, and circuits last (ranking.go).
//   - Its limits permit a stream for each pair of processes of a large job, and many peers behind one address
//     (resources.go).
//   - Circuits do not count as connections from the relay's address (circuits.go).
//   - Two observers are enough to confirm an address of this peer.
//   - A listening port that another process uses is an error. A port that the system has chosen stays the same
//     across restarts (ports.go).
package node
