// Package dialfilter filters the addresses of other peers that a peer dials.
//
// Any peer may claim that it, or another peer, is at 127.0.0.1 or 192.168.1.1. libp2p v0.51 dials such addresses;
// TestLocalServicesAreNotDialled in peer/net/node fails without the filter. A peer that dialled every such
// address would probe the owner's services, and those of the local network, on behalf of a stranger. So the
// filter considers where a peer was met: where it was connected, where the owner has configured it as a
// supernode, or where mDNS has reported it.
//
//	address                        is dialled
//	public                         always
//	where the peer was met         always
//	private                        if the peer was met at another private address, or if no
//	                               peer was met at a public address
//	of this machine                if the peer was met on this machine, or if all peers were
//	                               met there; a private address also if the peer was not met
//	                               nearby and no peer was met at a public address
//	loopback                       if all peers were met on this machine
//	link-local, unspecified,
//	multicast                      never
//
// Peers on one machine therefore find each other there, and peers of a laboratory find each other in its
// networks. Neighbours at home with a remote supernode find each other by mDNS. A peer that is connected
// through a relay counts as met at the relay's address. Host names are resolved only if the owner has
// configured them.
//
// The filter is libp2p's connection gater. It also applies to the direct connections between processes.
package dialfilter
