package reservation

import (
	"cmp"
	"slices"
)

// A Domain describes the failure domain of a peer: the properties that it shares with peers that may fail
// together with it. Two replicas of a rank are put into different failure domains if possible.
type Domain struct {
	Owner     string   `json:"owner,omitempty"`     // owner of the machine, or empty if unknown
	Verified  bool     `json:"verified,omitempty"`  // Owner is signed by a private network's owner; else claimed
	Addresses []string `json:"addresses,omitempty"` // observed addresses of the machine or router, in any consistent notation
	Said      string   `json:"said,omitempty"`      // claimed address, if none was observed
	Site      string   `json:"site,omitempty"`      // site as declared by the owner; may be empty
}

// A level is one criterion for peers that may fail together: peers with a name in common. If claimed is
// true, the names are claims. Then a group formed at earlier levels takes part only if all its members
// make the same claim. So a lying peer can neither join groups of other peers nor gain more separation
// than a peer without claims.
type level struct {
	names   func(Domain) []string
	claimed bool
}

var (
	signed      = level{names: func(d Domain) []string { return []string{"owner " + d.Owner} }} // unknown owners form one group
	address     = level{names: func(d Domain) []string { return labels("addr", d.Addresses...) }}
	claimedAddr = level{func(d Domain) []string { return labels("addr", d.Said) }, true}
	owner       = level{func(d Domain) []string { return labels("owner", d.Owner) }, true}
	site        = level{func(d Domain) []string { return labels("site", d.Site) }, true}
)

// A width is a list of levels, which are applied in order. Peers that one level joins may fail together.
type width []level

// widths lists the widths, the most careful first. If owners are verified, ownersFirst takes its place. A
// claimed owner is the last criterion that separates peers of one address.
var (
	widths      = []width{{address, claimedAddr, owner, site}, {address, claimedAddr, owner}, {address, claimedAddr, site}, {address, claimedAddr}, {owner}}
	ownersFirst = []width{{signed, address, claimedAddr, site}, {signed, address, claimedAddr}, {signed}, {address, claimedAddr, site}, {address, claimedAddr}}
)

// groups partitions the peers, which are to run want processes of n ranks, once per width. Peers with the
// same number may fail together, directly or through peers that may fail with both. best is the first
// partition in which no group needs more than n processes, or nil if no partition is. groups omits
// partitions into single peers, and partitions before best that conflict with best.
func groups(peers []PeerSlots, n, want int) (all [][]int, best []int) {
	chosen := widths
	if slices.ContainsFunc(peers, func(p PeerSlots) bool { return p.Domain.Verified }) {
		chosen = ownersFirst
	}
	for _, w := range chosen {
		g, any := group(peers, w)
		if !any {
			continue
		}
		if best == nil && apart(peers, g, n) >= want {
			all = slices.DeleteFunc(all, func(wider []int) bool { return !encloses(wider, g) })
			best = g
		}
		all = append(all, g)
	}
	return all, best
}

// encloses reports whether any two peers in one group of the partition group are also in one group of the
// partition wider.
func encloses(wider, group []int) bool {
	for i, first := range group {
		if wider[i] != wider[first] {
			return false
		}
	}
	return true
}

// apart returns how many processes of n ranks fit if no group gets more than n.
func apart(peers []PeerSlots, group []int, n int) (sum int) {
	room := make([]int, len(peers))
	for i, p := range peers {
		room[group[i]] += usable(p.Slots, n)
	}
	for _, r := range room {
		sum += min(r, n)
	}
	return sum
}

func labels(kind string, names ...string) (out []string) {
	for _, n := range names {
		if n != "" {
			out = append(out, kind+" "+n)
		}
	}
	return out
}

// group numbers each peer by the first peer of its group, and reports whether any group has several
// peers.
func group(peers []PeerSlots, w width) (of []int, any bool) {
	of = make([]int, len(peers))
	for i := range of {
		of[i] = i
	}
	seen := map[string]int{} // index of a peer with that name
	for _, l := range w {
		names := make([][]string, len(peers))
		for i, p := range peers {
			names[i] = l.names(p.Domain)
		}
		if l.claimed {
			names = agreed(of, names)
		}
		join(of, names, seen)
	}
	for i, first := range of {
		any = any || first != i
	}
	return of, any
}

// agreed returns, at the index of each group's first peer, the names if all members have the same ones.
func agreed(of []int, names [][]string) [][]string {
	out := make([][]string, len(names))
	for i, first := range of {
		if first == i {
			out[i] = names[i]
		} else if !slices.Equal(names[i], names[first]) {
			out[first] = nil
		}
	}
	return out
}

// join merges the groups of peers that have a name in common (union-find), and adds the names to seen.
func join(of []int, names [][]string, seen map[string]int) {
	first := func(i int) int { // of links each peer towards the first of its group
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	for i := range of {
		for _, name := range names[i] {
			if j, ok := seen[name]; ok {
				a, b := first(i), first(j)
				of[max(a, b)] = min(a, b)
			}
			seen[name] = i
		}
	}
	for i := range of {
		of[i] = first(i)
	}
}

// sum returns the total of have for each group.
func sum(group []int, have ...[]int) []int {
	total := make([]int, len(group))
	for i, g := range group {
		for _, h := range have {
			total[g] += h[i]
		}
	}
	return total
}

// Apart returns the candidates ordered by how little they share with the domains of the rank's other
// replicas, by the weights of Assign. The order is stable.
func Apart(candidates []Candidate, others []Domain) []Candidate {
	out := slices.Clone(candidates)
	slices.SortStableFunc(out, func(a, b Candidate) int {
		return cmp.Compare(a.Domain.shared(others), b.Domain.shared(others))
	})
	return out
}

// shared returns a weight for the properties that d has in common with any of others.
func (d Domain) shared(others []Domain) (weight int) {
	at := func(d Domain) []string { return append(address.names(d), claimedAddr.names(d)...) }
	kinds := []func(Domain) []string{owner.names, site.names, at} // in ascending weight
	if d.Verified {
		kinds = []func(Domain) []string{site.names, at, signed.names}
	}
	for i, names := range kinds {
		own := names(d)
		if slices.ContainsFunc(others, func(o Domain) bool {
			return slices.ContainsFunc(names(o), func(name string) bool { return slices.Contains(own, name) })
		}) {
			weight += 1 << i
		}
	}
	return weight
}
