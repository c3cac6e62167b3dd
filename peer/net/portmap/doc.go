// Package portmap maps ports of the home router to this machine, so that other peers can reach it behind
// address translation without relays and hole punching. It uses NAT-PMP or UPnP, whichever answers first.
//
//	machine                        router                        others
//	   |-- map your port 4001 ------>|
//	   |<---- of 11.0.1.1, yes ------|
//	   |  announces 11.0.1.1:4001    |
//	   |<============================|<================ connect ---|
//
// A mapping lasts for two minutes and is renewed, so mappings of a killed peer soon expire. A Mapper that
// is closed removes its mappings, if the router answers. If a router is lost, or has lost its external
// address, the Mapper searches again, as on a machine that has moved.
//
// libp2p v0.51 does not map ports by NAT-PMP on Linux, since its request for the gateway is rejected by its
// library. It maps only libp2p's ports, and searches for a router only once. TestNATRouterMapsPorts fails
// with its port manager, for NAT-PMP and for UPnP.
//
// Libraries implement the protocols. The one for NAT-PMP has not changed since 2019. Neither has the
// protocol (RFC 6886), and libp2p depends on the same library.
//
// # Limits
//
// A mapped port may still be unreachable. The router may be behind another router, or report a false
// address.
package portmap
