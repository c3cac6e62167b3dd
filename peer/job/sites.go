package job

import (
	"slices"

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

// sharers returns the peers with which a peer shares what it fetches: its neighbours among all, and
// among those of its site. The relation is symmetric.
func sharers(peer int, sites []int) []int {
	out := filetransfer.Neighbours(peer, len(sites))
	var mates []int // at its site, itself included
	at := 0
	for i, site := range sites {
		if site != sites[peer] {
			continue
		}
		if i == peer {
			at = len(mates)
		}
		mates = append(mates, i)
	}
	for _, i := range filetransfer.Neighbours(at, len(mates)) {
		if !slices.Contains(out, mates[i]) {
			out = append(out, mates[i])
		}
	}
	return out
}
