// Package relay has peers meet that cannot reach each other: through a third that
// both can reach, a supernode as a rule. It is libp2p's circuit relay v2 with the
// decisions that a network of volunteers needs.
//
//	peer that nobody reaches     relay                          another peer
//	   |-- Reserve ------------->|  of this network? room left?
//	   |<------ until when ------|
//	   |  its addresses now end in /p2p/RELAY/p2p-circuit
//	   |                         |<------------------- Connect --|
//	   |<====== circuit, encrypted from end to end, metered ====>|
//
// A peer reserves at each of its supernodes at once, without waiting to be told that
// nobody reaches it, keeps the reservation, and asks again after a loss. Where these
// are fewer than three, it reserves at other peers, too: those that say that they relay
// for everybody, as every peer does that others were found to reach and whose owner
// allows it. So a relay that is lost has been replaced before. Libp2p's own
// AutoRelay would advertise a relay only if that has a public address, and stay away
// for an hour from one that refused.
//
// A relay serves members of its own network only, so many and so much for each as
// Limits say (O4). It does not announce the limits of a circuit: libp2p holds a
// connection with limits for unfit for anything but meeting, and the DHT would hang
// on it. Whoever spends them loses the circuit, and may open another.
//
// Not promised: that a relay is there for as long as a job. What goes through it
// ends with it.
package relay
