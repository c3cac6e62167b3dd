// Package loopback lets a libp2p host open streams to itself, which libp2p refuses. So a submitter that
// also donates slots uses the same protocols for its own peer as for others, and services need no second
// interface.
//
//	NewStream(other) -> libp2p
//	NewStream(self)  -> socket pair -> handler of the protocol, same process
//
// A stream to the host itself implements only what the services of this module use; it has no resource
// scope and no addresses.
package loopback
