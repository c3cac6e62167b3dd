// Package connection says how this peer is connected with others: directly, through
// a hole punched into the routers between, or through a relay; how far away they are; and
// why the way is no better.
//
//	libp2p's hole puncher -- events --> Punches --.
//	connections of the host ----------------------+--> Best --> Connection
//
// What it says is what is now. Nothing here makes a connection better.
//
// It also finds out, by Doors, whether a peer that is not connected any more has ended (F2): its
// machine refuses connections where the peer was seen to take them. A link that is cut does not.
package connection
