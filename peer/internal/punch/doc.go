// Package punch has two peers behind address translation reach each other directly once
// they have met through a relay. It is libp2p's hole punching, tried again.
//
//	peer                      relay                      other peer
//	   |======== circuit ======|======== circuit ============|
//	   |  "I am 11.0.1.1:4001" |  "I am 11.0.2.1:4001"       |
//	   |-------- now ----------|---------------------------->|
//	   |--- SYN --> its router lets answers in  <--- SYN ----|
//	   |<=========== a connection, of these two =============|
//
// Libp2p tries when a circuit begins, and never again: not when a peer did not know its
// own public address yet, and not when its router or its address have changed. A Service
// tries for as long as a pair has nothing but circuits, more and more rarely, and at once
// when this peer's own addresses change. When is decided by a pure core, plan.
//
// A host dials over the Puncher's TCP, so that no dial before it is in a hole's way.
//
// Not promised: that it succeeds. Two routers that give every destination another port
// cannot be got through so.
package punch
