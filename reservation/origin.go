package reservation

import (
	"net/netip"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// originOf identifies the machine, router or relay behind an address, so that all identities at one
// address count as one origin. For IPv6, where each customer has many addresses, it returns the /56
// network. It returns "" for loopback addresses, and for link-local ones, which exist in every network.
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
	if err != nil { // impossible: an IPv6 address has enough bits
		return addr.String()
	}
	return network.String()
}
