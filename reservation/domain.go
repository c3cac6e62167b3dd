package reservation

import (
	"cmp"
	"slices"
)

// A Domain says what a peer may lose together with others: two replicas of a rank are kept
// apart by it when there is a choice.
type Domain struct {
	Owner     string   `json:"owner,omitempty"`     // whose machine it is; empty: not known
	Verified  bool     `json:"verified,omitempty"`  // of Owner: the owner of a private network has signed it; else the peer says so
	Addresses []string `json:"addresses,omitempty"` // of its machine or its router as seen, in any one way of writing them
	Said      string   `json:"said,omitempty"`      // such an address by its own word, where none is seen
	Site      string   `json:"site,omitempty"`      // as its owner declares it; empty: not
}

// A level is one way in which peers may fail together: those that have a name in common. What peers
// only say joins those on whose earlier levels all say the same: so one that lies joins none of the
// others, and parts no more than if it said nothing.
type level struct {
	names func(Domain) []string
	said  bool
}

var (
	signed  = level{names: func(d Domain) []string { return []string{"owner " + d.Owner} }} // the unknown are together
	address = level{names: func(d Domain) []string { return labels("addr", d.Addresses...) }}
	saysAt  = level{func(d Domain) []string { return labels("addr", d.Said) }, true}
	owner   = level{func(d Domain) []string { return labels("owner", d.Owner) }, true}
	site    = level{func(d Domain) []string { return labels("site", d.Site) }, true}
)

// A width is a way to see which peers fail together: those that one of its levels joins, one level after the other.
type width []level

// widths are the ways, the most careful first, and ownersFirst those where owners are verified. What
// a peer says of its owner parts peers of one address last of all.
var (
	widths      = []width{{address, saysAt, owner, site}, {address, saysAt, owner}, {address, saysAt, site}, {address, saysAt}, {owner}}
	ownersFirst = []width{{signed, address, saysAt, site}, {signed, address, saysAt}, {signed}, {address, saysAt, site}, {address, saysAt}}
)

// groups numbers the peers, which are to run want processes of n ranks, for each width, so that two have
// the same number if they may fail together: directly, or by way of others that fail with both. Widths in
// which every peer is on its own are left out, and those that would stand in the way of best: the first in which no
// group needs more than n. It is nil if there is none.
func groups(peers []PeerSlots, n, want int) (all [][]int, best []int) {
	ways := widths
	if slices.ContainsFunc(peers, func(p PeerSlots) bool { return p.Domain.Verified }) {
		ways = ownersFirst
	}
	for _, w := range ways {
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

// encloses reports whether peers that are together in group are so in wider.
func encloses(wider, group []int) bool {
	for i, first := range group {
		if wider[i] != wider[first] {
			return false
		}
	}
	return true
}

// apart is how many processes of n ranks fit when no group gets more than n.
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

// group numbers the peers by the first of each group, and reports whether there is one of several.
func group(peers []PeerSlots, w width) (of []int, any bool) {
	of = make([]int, len(peers))
	for i := range of {
		of[i] = i
	}
	seen := map[string]int{} // who has a name
	for _, l := range w {
		names := make([][]string, len(peers))
		for i, p := range peers {
			names[i] = l.names(p.Domain)
		}
		if l.said {
			names = agreed(of, names)
		}
		join(of, names, seen)
	}
	for i, first := range of {
		any = any || first != i
	}
	return of, any
}

// agreed leaves the names on which all of a group agree, as those of its first.
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

// join joins the groups of peers that have a name in common, and adds the names to seen.
func join(of []int, names [][]string, seen map[string]int) {
	first := func(i int) int { // of is the way to the group's first, as in every union-find
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

// sum adds up what peers have by group.
func sum(group []int, have ...[]int) []int {
	total := make([]int, len(group))
	for i, g := range group {
		for _, h := range have {
			total[g] += h[i]
		}
	}
	return total
}

// Apart returns the candidates in another order: those first that share least with where the
// others of a rank are, as Assign sees it. Those that share as much stay in order.
func Apart(candidates []Candidate, others []Domain) []Candidate {
	out := slices.Clone(candidates)
	slices.SortStableFunc(out, func(a, b Candidate) int {
		return cmp.Compare(a.Domain.shared(others), b.Domain.shared(others))
	})
	return out
}

// shared weighs what d has in common with any of others.
func (d Domain) shared(others []Domain) (weight int) {
	at := func(d Domain) []string { return append(address.names(d), saysAt.names(d)...) }
	kinds := []func(Domain) []string{owner.names, site.names, at} // ever worse
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
