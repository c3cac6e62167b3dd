package submit

import (
	"net/netip"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// knownPeers holds what a job knows of peers that could run its processes.
type knownPeers struct {
	s        *Submitter
	spec     *jobspec.Spec
	excluded map[p2ppeer.ID]bool                  // peers that failed to stage or start the job
	met      map[p2ppeer.ID]reservation.Candidate // candidates found so far
}

// domain returns the failure domain of a candidate. Peers with the same public address are behind
// one router. Peers with the same other address are on one machine.
func (k *knownPeers) domain(c p2ppeer.AddrInfo, o discovery.Offer) reservation.Domain {
	d := reservation.Domain{Owner: o.Owner, Site: o.Site}
	d.Addresses, d.Said = k.addresses(c)
	if owner := k.s.cfg.Owner; owner != nil {
		d.Owner, d.Verified = owner(c.ID), true
	}
	return d
}

// domainOf returns the failure domain of a peer that this job, or this machine's peer, has met
// before.
func (k *knownPeers) domainOf(id p2ppeer.ID) reservation.Domain {
	if c, ok := k.met[id]; ok {
		return c.Domain
	}
	known := k.s.cfg.Discovery.Peers()
	i := slices.IndexFunc(known, func(p discovery.Known) bool { return p.AddrInfo.ID == id })
	if i < 0 {
		return k.domain(p2ppeer.AddrInfo{ID: id}, discovery.Offer{})
	}
	return k.domain(known[i].AddrInfo, known[i].Offer)
}

// addresses names a candidate's machine or router, as seen from here and as claimed by the
// candidate.
func (k *knownPeers) addresses(c p2ppeer.AddrInfo) (seen []string, said string) {
	if c.ID == k.s.cfg.Host.ID() {
		return homes(k.s.cfg.Host.Addrs(), nil)
	}
	var from []ma.Multiaddr
	for _, conn := range k.s.cfg.Host.Network().ConnsToPeer(c.ID) {
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

// eligible returns the candidates that can run the program, and records why the others cannot.
func (k *knownPeers) eligible(found []discovery.Candidate, why considered) []reservation.Candidate {
	var out []reservation.Candidate
	for _, c := range found {
		id := c.AddrInfo.ID
		if !k.spec.RunsOn(c.Offer.OS, c.Offer.Arch) {
			why[id] = verdict{job.Platforms, c.Offer.OS + "/" + c.Offer.Arch}
			continue
		}
		if k.excluded[id] {
			why[id] = verdict{job.Unfit, ""}
			continue
		}
		k.s.cfg.Host.Peerstore().AddAddrs(id, c.AddrInfo.Addrs, time.Hour)
		out = append(out, reservation.Candidate{
			Peer: id, Slots: c.Offer.Free(), Total: c.Offer.SlotsTotal,
			Speed: effectiveSpeed(c.Offer), RTT: c.RTT, Domain: k.domain(c.AddrInfo, c.Offer),
		})
	}
	return out
}

// effectiveSpeed returns the part of a peer's speed that the load of its machine leaves.
func effectiveSpeed(o discovery.Offer) int { return int(float64(o.Speed) / (1 + o.Load)) }
