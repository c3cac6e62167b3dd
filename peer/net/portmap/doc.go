// Package portmap maps ports of the home router to this machine, so that other peers can reach it behind
// address translation without relays and hole punching. It uses NAT-PMP or UPnP, whichever answers first.
//
//	machine                        router                        others
//	   |-- map your port 4001 ------>|
//	   |<---- 11.0.1.1:4001 ---------|
//	   |  announces 11.0.1.1:4001    |
//	   |<============================|<================ connect ---|
//
// A mapping lasts for two minutes and is renewed, so the mappings of a killed peer soon expire. A Mapper that
// is closed removes its mappings, if the router answers. If the router no longer answers, or has lost its
// external address, the Mapper searches again. So it also finds the router of another network into which the
// machine has moved.
//
// libp2p v0.51 has a port manager of its own. On Linux it does not find routers by NAT-PMP, because the library
// that it asks for the gateway rejects the request. It maps only libp2p's ports, and not those of direct
// connections between processes. It does not search again if it finds no router at startup.
// TestNATRouterMapsPorts in e2e fails with it, for NAT-PMP and for UPnP.
//
// Libraries implement the protocols. The library for NAT-PMP has not changed since 2019, nor has the protocol
// (RFC 6886), and libp2p uses the same library.
//
// # Limits
//
// A mapped port may still be unreachable. The router may be behind another router, or report a false
// address.
package portmap
