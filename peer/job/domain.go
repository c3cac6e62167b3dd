package job

import (
	"net/netip"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// domain says with whom a candidate fails: those of the same public address sit behind one
// router, those of the same address otherwise on one machine.
func (j *run) domain(c discovery.Candidate) reservation.Domain {
	return reservation.Domain{Addresses: j.addresses(c.AddrInfo), Site: c.Offer.Site}
}

// addresses names a candidate's machine or router: by the address that it is connected from,
// and by those that it says of itself as far as these are public. Its private ones say
// nothing, since machines elsewhere have the same.
func (j *run) addresses(c p2ppeer.AddrInfo) []string {
	var from []ma.Multiaddr
	self := c.ID == j.s.cfg.Host.ID()
	if self {
		from = j.s.cfg.Host.Addrs()
	}
	for _, conn := range j.s.cfg.Host.Network().ConnsToPeer(c.ID) {
		from = append(from, conn.RemoteMultiaddr())
	}
	seen := make(map[string]bool)
	var out []string
	add := func(a ma.Multiaddr, always bool) {
		ip, ok := address(a)
		if !ok || !always && !manet.IsPublicAddr(a) || seen[home(ip)] {
			return
		}
		seen[home(ip)] = true
		out = append(out, home(ip))
	}
	for _, a := range from {
		add(a, true)
	}
	for _, a := range c.Addrs {
		add(a, false)
	}
	return out
}

// address returns the IP address of a, unless that is a relay's.
func address(a ma.Multiaddr) (netip.Addr, bool) {
	if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err == nil {
		return netip.Addr{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	out, ok := netip.AddrFromSlice(ip)
	return out.Unmap(), ok
}

// home names the router behind an address: that of IPv4 itself, and of IPv6 the network, of
// which every machine has an address of its own.
func home(ip netip.Addr) string {
	if ip.Is4() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil { // an IPv6 address has as many bits
		return ip.String()
	}
	return network.String()
}
