package submit

import (
	"net/netip"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// domain returns the failure domain of a candidate. Peers with the same public address are behind
// one router. Peers with the same other address are on one machine.
func (j *run) domain(c p2ppeer.AddrInfo, o discovery.Offer) reservation.Domain {
	d := reservation.Domain{Owner: o.Owner, Site: o.Site}
	d.Addresses, d.Said = j.addresses(c)
	if owner := j.s.cfg.Owner; owner != nil {
		d.Owner, d.Verified = owner(c.ID), true
	}
	return d
}

// domains returns the failure domains of the peers of these links.
func (j *run) domains(links []*link) (out []reservation.Domain) {
	for _, l := range links {
		out = append(out, j.domainOf(l.peer))
	}
	return out
}

// slotMachines returns the machines that the peers of these links have named in their grants.
func slotMachines(links []*link) (out []string) {
	for _, l := range links {
		if l.slots.Machine != "" {
			out = append(out, l.slots.Machine)
		}
	}
	return out
}

// domainOf returns the failure domain of a peer that this job, or this machine's peer, has met
// before.
func (j *run) domainOf(id p2ppeer.ID) reservation.Domain {
	if c, ok := j.met[id]; ok {
		return c.Domain
	}
	known := j.s.cfg.Discovery.Peers()
	i := slices.IndexFunc(known, func(k discovery.Known) bool { return k.AddrInfo.ID == id })
	if i < 0 {
		return j.domain(p2ppeer.AddrInfo{ID: id}, discovery.Offer{})
	}
	return j.domain(known[i].AddrInfo, known[i].Offer)
}

// addresses names a candidate's machine or router, as seen from here and as claimed by the
// candidate.
func (j *run) addresses(c p2ppeer.AddrInfo) (seen []string, said string) {
	if c.ID == j.s.cfg.Host.ID() {
		return homes(j.s.cfg.Host.Addrs(), nil)
	}
	var from []ma.Multiaddr
	for _, conn := range j.s.cfg.Host.Network().ConnsToPeer(c.ID) {
		from = append(from, conn.RemoteMultiaddr())
	}
	return homes(from, c.Addrs)
}

// homes names the machine or router of a peer that is connected from some addresses and claims
// others. Claims count only if no connection shows a public address. Then only the first IPv4
// address counts, or else the first IPv6 address: with two, a peer could make two other peers seem
// to fail together. Claimed private addresses are useless, since other networks use the same ones.
func homes(from, says []ma.Multiaddr) (seen []string, said string) {
	shown := false
	for _, a := range from {
		if ip, ok := address(a); ok {
			if name := home(ip); !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
			shown = shown || manet.IsPublicAddr(a)
		}
	}
	if shown {
		return seen, ""
	}
	var first netip.Addr
	for _, a := range says {
		if ip, ok := address(a); ok && manet.IsPublicAddr(a) && (!first.IsValid() || ip.Is4() && !first.Is4()) {
			first = ip
		}
	}
	if first.IsValid() {
		said = home(first)
	}
	return seen, said
}

// address returns the IP address of a, unless a goes through a relay.
func address(a ma.Multiaddr) (netip.Addr, bool) {
	if connection.IsCircuit(a) {
		return netip.Addr{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	out, ok := netip.AddrFromSlice(ip)
	return out.Unmap(), ok
}

// home names the router or machine at an address. For a public IPv6 address it returns the /64
// network, in which every machine has an address of its own.
func home(ip netip.Addr) string {
	if ip.Is4() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil { // does not happen: an IPv6 address has 128 bits
		return ip.String()
	}
	return network.String()
}
