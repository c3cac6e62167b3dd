// Package punch connects two peers behind address translation directly, once they are connected through a
// relay. It repeats libp2p's hole punching.
//
//	peer                      relay                      other peer
//	   |======== circuit ======|======== circuit ============|
//	   |  "I am 11.0.1.1:4001" |  "I am 11.0.2.1:4001"       |
//	   |-------- now ----------|---------------------------->|
//	   |--- SYN --> its router lets answers in  <--- SYN ----|
//	   |<=========== a direct connection ====================|
//
// libp2p v0.51 tries only when a circuit begins; TestNATHolePunchedLater fails without the retries. A peer
// may learn its public address later, or a router may change. So a Puncher repeats the attempt for as long
// as a pair has only circuits, at growing intervals, and soon after this peer's own addresses change.
//
// The host dials through the Puncher's TCP transport, so that no earlier dial prevents a hole.
//
// # Limits
//
// Hole punching may fail. It cannot succeed between two routers that use another port for each destination.
package punch
