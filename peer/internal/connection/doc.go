// Package connection says how this peer is connected with others: directly, through
// a hole punched into the routers between, or through a relay; how far away they are; and
// why the way is no better.
//
//	libp2p's hole puncher -- events --> Punches --.
//	connections of the host ----------------------+--> Best --> Connection
//
// What it says is what is now. Nothing here makes a connection better.
package connection
