package job

import (
	"net/netip"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// sites numbers the sites of the job's peers: see sitesOf.
func (e *execution) sites() []int {
	domains := make([]reservation.Domain, len(e.links))
	for i, l := range e.links {
		domains[i] = e.j.domainOf(l.peer)
	}
	return sitesOf(domains)
}

// sitesOf numbers the sites of peers: two peers are at one site if they declare the same site, or
// are seen at the same address, such as that of their router. What a peer declares is not checked: a
// false claim costs the peers of that site some time (see filetransfer).
func sitesOf(domains []reservation.Domain) []int {
	sites := make([]int, len(domains))
	first := make(map[string]int) // by name or address
	for i, d := range domains {
		sites[i] = i
		names := make([]string, 0, len(d.Addresses)+1)
		if d.Site != "" {
			names = append(names, "site "+d.Site)
		}
		for _, a := range d.Addresses {
			names = append(names, "address "+a)
		}
		for _, name := range names {
			j, ok := first[name]
			if !ok {
				first[name] = i
				continue
			}
			from, to := sites[i], sites[j]
			for k := range i + 1 {
				if sites[k] == from {
					sites[k] = to
				}
			}
		}
	}
	return sites
}

// atHome reports whether a peer is at the submitter's own site: both declare the same site, or, where one
// of them declares none, the submitter reaches the peer at an address of a local network.
func (j *run) atHome(p p2ppeer.ID) bool {
	d := j.domainOf(p)
	if own := j.s.cfg.Site; own != "" && d.Site != "" {
		return own == d.Site
	}
	return slices.ContainsFunc(d.Addresses, func(a string) bool {
		ip, err := netip.ParseAddr(a) // of a network of IPv6 it is none, and that is public
		return err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast())
	})
}

// sharers returns the peers with which a peer shares what it fetches: its neighbours among all, and
// among those of its site. The relation is symmetric. home says which peers are at the submitter's site:
// these share with each other only. What they fetch from the submitter costs nothing of the site's
// uplink, and what others fetched from them would use that uplink once more.
func sharers(peer int, sites []int, home []bool) []int {
	out := neighbours(peer, len(sites), func(i int) bool { return home[i] == home[peer] })
	for _, i := range neighbours(peer, len(sites), func(i int) bool { return home[i] == home[peer] && sites[i] == sites[peer] }) {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// neighbours returns filetransfer.Neighbours of a peer among those of n peers that are in a set, as it is.
func neighbours(peer, n int, in func(i int) bool) (js []int) {
	var set []int
	for i := range n {
		if in(i) {
			set = append(set, i)
		}
	}
	for _, j := range filetransfer.Neighbours(slices.Index(set, peer), len(set)) {
		js = append(js, set[j])
	}
	return js
}
