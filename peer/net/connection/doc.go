// Package connection describes how this peer is connected to others: directly, through a punched hole, or
// through a relay. It measures round trips and explains why a connection is not a better one.
//
//	libp2p's hole puncher -- events --> Punches --.
//	connections of the host ----------------------+--> Best --> Connection
//
// The package describes only the present state. It does not improve connections.
//
// libp2p v0.51 records neither which connection a punched hole has led to, nor why a connection is relayed. It
// reports only the events from which Punches determines both. TestNATHolePunchedLater in e2e fails without
// Punches.
//
// Endpoints determines whether the process of a disconnected peer has ended (F2). In that case the peer's
// machine refuses connections to an address at which the peer accepted them before. If only a link has failed,
// there is no answer. libp2p v0.51 does not distinguish these cases; TestF2KilledPeerIsLostAtOnce in
// peer/job/submit fails without Endpoints.
package connection
