// Package loopback lets a libp2p host open streams to itself, which libp2p
// refuses. A submitter that also donates slots talks to its own peer by the
// same protocols as to any other, and no service needs a second way in.
//
//	NewStream(other) -> libp2p
//	NewStream(self)  -> socket pair -> handler of the protocol, same process
//
// Only what the services of this module use of a stream to oneself is there;
// it has no resource scope and no addresses.
package loopback
