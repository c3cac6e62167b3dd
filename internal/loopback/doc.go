// Package loopback lets a libp2p host open streams to itself, which libp2p refuses. A submitter's peer that also
// offers slots can therefore use the same protocols with itself as with other peers, and services need no second
// interface.
//
//	NewStream(other) -> libp2p
//	NewStream(self)  -> socket pair -> handler of the protocol, same process
//
// A stream to the host itself implements only what the services of this module use; it has no resource scope and
// no meaningful addresses.
package loopback
