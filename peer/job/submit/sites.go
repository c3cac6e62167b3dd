package submit

import (
	"net/netip"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// serveSites determines which peers of the job share a site, and which are at the submitter's. It
// offers the job's contents to the latter and to the others separately; see sharers.
func (m *membership) serveSites() {
	domains := make([]reservation.Domain, len(m.links))
	for i, l := range m.links {
		domains[i] = m.j.known.domainOf(l.peer)
	}
	own := reservation.Domain{Site: m.j.s.cfg.Site}
	own.Addresses, _ = homes(m.j.s.cfg.Host.Addrs(), nil)
	m.sites = sitesOf(domains)
	m.local = localSites(domains, m.sites, own)
	var here, elsewhere []p2ppeer.ID
	for i, l := range m.links {
		if m.local[i] {
			here = append(here, l.peer)
		} else {
			elsewhere = append(elsewhere, l.peer)
		}
	}
	m.serve(here...)
	m.serve(elsewhere...)
}

// sitesOf numbers the sites of peers. Two peers are at one site if they declare the same site, or
// are seen at the same address, such as that of their router. A peer's declaration is not checked.
// A false one costs the peers of that site some time (see filetransfer). A false claim to be at the
// submitter's site costs one more copy over its uplink.
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

// localSites reports for each peer whether it is at the submitter's site. All peers of a site get
// the same answer. A site is the submitter's if the submitter has the declared name or an address
// of a peer there. It also is if the submitter reaches a peer there at an address of a local
// network and the peer declares no other name.
func localSites(domains []reservation.Domain, sites []int, own reservation.Domain) []bool {
	is := make(map[int]bool)
	for i, d := range domains {
		is[sites[i]] = is[sites[i]] || isLocal(d, own)
	}
	local := make([]bool, len(sites))
	for i, site := range sites {
		local[i] = is[site]
	}
	return local
}

func isLocal(d, own reservation.Domain) bool {
	if own.Site != "" && d.Site != "" {
		return own.Site == d.Site
	}
	return slices.ContainsFunc(d.Addresses, func(a string) bool {
		ip, err := netip.ParseAddr(a) // fails for public IPv6 addresses, which are recorded as prefixes
		return slices.Contains(own.Addresses, a) || err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast())
	})
}

// sharers returns the peers with which a peer shares fetched contents: its neighbours among all
// peers, and those among the peers of its site. The relation is symmetric. local reports which
// peers are at the submitter's site; these share only with each other. They fetch from the
// submitter without using the site's uplink. Other peers that fetched from them would use the
// uplink once more.
func sharers(peer int, sites []int, local []bool) []int {
	out := neighbours(peer, len(sites), func(i int) bool { return local[i] == local[peer] })
	for _, i := range neighbours(peer, len(sites), func(i int) bool { return local[i] == local[peer] && sites[i] == sites[peer] }) {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// neighbours returns filetransfer.Neighbours of a peer within a subset of n peers. in reports which
// peers are in the subset; the peer itself is.
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
