// Package relay connects peers that cannot reach each other through a third peer that both can reach,
// usually a supernode. It is libp2p's circuit relay v2 with the policies that a network of volunteers
// needs.
//
//	peer behind NAT              relay                          another peer
//	   |-- Reserve ------------->|  same network? room left?
//	   |<------ until when ------|
//	   |  its addresses now end in /p2p/RELAY/p2p-circuit
//	   |                         |<------------------- Connect --|
//	   |<====== circuit, encrypted from end to end, metered ====>|
//
// AutoRelay of libp2p v0.51 does not advertise a relay that has only private addresses; TestLANRelay fails
// with it. libp2p v0.51 does not limit a circuit without announcing the limits. It treats a connection with
// announced limits as unfit for most protocols, and the DHT would stall on it.
//
// A peer reserves at each of its supernodes at once, without waiting for a reachability check. It keeps the
// reservations, and renews them after a loss. If there are fewer than three, it reserves at other peers
// too: those that announce that they relay for the whole network. A peer does so if others were found to
// reach it and its owner allows it. A lost relay therefore already has a replacement.
//
// A relay serves only members of its own network, within its Limits (O4). A circuit that reaches a limit is
// closed, and the peer may open another one.
//
// # Limits
//
// A relay may leave before a job ends. Its circuits end with it.
package relay
