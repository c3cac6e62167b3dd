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
// Libraries implement the protocols. This package replaces libp2p's own port manager for three reasons.
// That one waits ten seconds even if a router has answered, its request for the gateway is rejected by its
// library, and it maps only libp2p's ports.
//
// # Limits
//
// A mapped port may still be unreachable. The router may be behind another router, or report a false
// address.
package portmap
