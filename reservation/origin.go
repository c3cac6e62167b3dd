package reservation

import (
	"net/netip"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// originOf names the machine or router behind an address, or the relay that leads to it: whoever
// has one address, however many identities, is one origin. Of IPv6, of which everybody has very
// many, it is the network of a customer. This machine is none, and link-local addresses, of which every
// network has the same, are none.
func originOf(a ma.Multiaddr) string {
	if a == nil || manet.IsIPLoopback(a) {
		return ""
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return ""
	}
	addr, ok := netip.AddrFromSlice(ip)
	if addr = addr.Unmap(); !ok || addr.IsLinkLocalUnicast() {
		return ""
	}
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(56)
	if err != nil { // an IPv6 address has as many bits
		return addr.String()
	}
	return network.String()
}
