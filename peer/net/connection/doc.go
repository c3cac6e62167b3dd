// Package connection describes how this peer is connected to others: directly, through a punched hole, or
// through a relay. It measures round trips and explains why a connection is not a better one.
//
//	libp2p's hole puncher -- events --> Punches --.
//	connections of the host ----------------------+--> Best --> Connection
//
// It describes only the present state, and does not improve connections.
//
// The type Endpoints determines whether a disconnected peer has ended (F2): the peer's machine then refuses
// connections to an address where the peer accepted them before. If only a link has failed, there is no
// answer.
package connection
