// Package relay connects two peers that cannot reach each other. They connect through a third peer that both
// can reach, usually a supernode. The package adds policies for a network of volunteers to libp2p's circuit
// relay v2.
//
//	peer behind NAT              relay                          another peer
//	   |-- Reserve ------------->|  same network? below the limits?
//	   |<-------- expiry --------|
//	   |  its addresses now end in /p2p/RELAY/p2p-circuit
//	   |                         |<------------------- Connect --|
//	   |<====== circuit, encrypted from end to end, metered ====>|
//
// Two parts of libp2p v0.51 are unsuitable. Its AutoRelay does not advertise a relay that has only private
// addresses; TestLANRelay in e2e fails with it. Its relay announces the limits of a circuit to both peers. libp2p
// then uses the circuit only for protocols that allow limited connections, and the DHT would stall on it. With
// such limits, TestPeersThatDoNotListenConnectThroughARelay fails.
//
// A peer reserves at each of its supernodes at once, without waiting for a reachability check. It renews each
// reservation before it expires, and after a loss. A peer with fewer than three reservations also reserves at
// other peers that announce themselves as relays for the whole network. A peer announces itself if libp2p has
// found that others can reach it, and if its owner allows that. So when a relay is lost, another one is already
// in use.
//
// A relay serves only members of its own network, within its Limits (O4). A circuit that reaches a limit is
// closed, and the peer may open another circuit.
//
// # Limits
//
// A relay may leave before a job ends. Its circuits end with it.
package relay
