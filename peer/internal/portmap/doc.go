// Package portmap has the home router lead some of its ports to this machine, so that others
// reach it through address translation without relays and holes: NAT-PMP or UPnP, whichever
// answers first.
//
//	machine                        router                        others
//	   |-- lead your port 4001 ----->|
//	   |<---- of 11.0.1.1, yes ------|
//	   |  announces 11.0.1.1:4001    |
//	   |<============================|<================ connect ---|
//
// A mapping lasts for two minutes and is renewed, so that little is left of a peer that
// was killed; one that is closed takes its mappings back, if the router answers. A router that
// is gone, or has lost its address, is looked for again, as on a machine that has moved. The
// libraries do the protocols; libp2p's own manager of them waits ten seconds for a router that has answered, asks for the gateway in a way that
// its library refuses, and maps no ports but libp2p's.
//
// Not promised: that others get through. A router may stand behind another, or lie.
package portmap
