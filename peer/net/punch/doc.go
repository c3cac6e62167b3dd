// Package punch makes direct connections between peers behind address translation that are connected through a
// relay. It repeats libp2p's hole punching.
//
//	peer                      relay                      other peer
//	   |======== circuit ======|======== circuit ============|
//	   |  "I am 11.0.1.1:4001" |  "I am 11.0.2.1:4001"       |
//	   |-------- now ----------|---------------------------->|
//	   |--- SYN -->  each router admits answers  <--- SYN ---|
//	   |<=========== a direct connection ====================|
//
// libp2p v0.51 tries only when a circuit begins; TestNATHolePunchedLater in e2e fails without further attempts. A
// peer may learn its public address later, and a router may change. So a Puncher repeats the attempt for as long
// as two peers are connected only by circuits: at growing intervals, and soon after the addresses of this peer
// change.
//
// libp2p v0.51 makes all dials from the listening port. A failed dial can then prevent a hole for minutes. So the
// Puncher's TCP transport dials peers that have relays from another port, unless they have answered before.
// Without the other port, TestNATSlowAndLossy in e2e failed in 3 of 9 runs. All such dials share one port, which
// shows how a router translates ports; with a port for each dial, TestNATAllKinds in e2e failed in 3 of 3 runs.
// Without the record of addresses that have answered, that test failed in 2 of 9 runs, and with the record in none
// of 20.
//
// # Limits
//
// Hole punching may fail. It cannot succeed between two routers that use another port for each destination.
package punch
