package job

import (
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"net/netip"
	"slices"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// serveSites finds out which peers of the job are at one site, and which at the submitter's, and puts the job's
// contents on offer to these and to others separately: see sharers.
func (e *execution) serveSites() {
	domains := make([]reservation.Domain, len(e.links))
	for i, l := range e.links {
		domains[i] = e.j.domainOf(l.peer)
	}
	own := reservation.Domain{Site: e.j.s.cfg.Site}
	own.Addresses, _ = homes(e.j.s.cfg.Host.Addrs(), nil)
	sites := sitesOf(domains)
	var here, elsewhere []p2ppeer.ID
	for i, local := range localSites(domains, sites, own) {
		l := e.links[i]
		if l.site, l.local = sites[i], local; local {
			here = append(here, l.peer)
		} else {
			elsewhere = append(elsewhere, l.peer)
		}
	}
	e.serve(here...)
	e.serve(elsewhere...)
}

// sitesOf numbers the sites of peers: two peers are at one site if they declare the same site, or
// are seen at the same address, such as that of their router. What a peer declares is not checked: a
// false claim costs the peers of that site some time (see filetransfer), and a claim to be at the submitter's
// site one more copy over its uplink.
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

// localSites says of each peer whether it is at the submitter's site, as all peers of a site are or none. A site
// is the submitter's if the submitter has the name or an address of a peer there, or reaches one, which does not
// declare another name, at an address of a local network.
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
		ip, err := netip.ParseAddr(a) // public IPv6 addresses are recorded as prefixes, which do not parse
		return slices.Contains(own.Addresses, a) || err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast())
	})
}

// sharers returns the peers with which a peer shares what it fetches: its neighbours among all, and
// among those of its site. The relation is symmetric. local says which peers are at the submitter's site:
// these share only with each other. What they fetch from the submitter does not use the site's uplink; what
// others fetched from them would use it once more.
func sharers(peer int, sites []int, local []bool) []int {
	out := neighbours(peer, len(sites), func(i int) bool { return local[i] == local[peer] })
	for _, i := range neighbours(peer, len(sites), func(i int) bool { return local[i] == local[peer] && sites[i] == sites[peer] }) {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// neighbours returns filetransfer.Neighbours of a peer within a subset of n peers: those for which in is
// true, as it is for the peer.
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
