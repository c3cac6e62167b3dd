// Package dialfilter filters the addresses of other peers that a peer dials.
//
// Any peer may claim that a peer is at 127.0.0.1 or 192.168.1.1: in the table of a job, in the DHT, or
// about itself. A peer that dialled every such address would probe its owner's own services, and those of
// the local network, on behalf of a stranger. The filter therefore depends on where the peer was met, and
// on the most distant peer met so far:
//
//	address                        is dialled
//	public                         always
//	where the peer was met         always: it was connected there, the owner has configured
//	                               it as a supernode, or mDNS has reported it
//	private                        if the peer was met at another private address, or if no
//	                               peer was met at a public one
//	of this machine                if the peer was met on this machine, or if all peers were
//	                               met there; a private one also for a peer that was not met
//	                               nearby, if no peer was met at a public address
//	loopback                       if all peers were met on this machine
//	link-local, unspecified,
//	multicast                      never
//
// Peers on one machine therefore find each other there, and those of a laboratory in its networks.
// Neighbours at home with a remote supernode find each other over multicast DNS. For a peer behind a relay,
// the relay's address counts. Names are resolved only if the owner has configured them.
//
// The filter is used as libp2p's connection gater, and for the direct connections between processes.
package dialfilter
