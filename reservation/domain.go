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
	Addresses []string `json:"addresses,omitempty"` // of its machine or its router, in any one way of writing them
	Site      string   `json:"site,omitempty"`      // as its owner declares it; empty: not
}

// A width is a way to see which peers fail together: those that have a name in common.
type width func(Domain) []string

func byOwner(d Domain) []string          { return labels("owner", d.Owner) }
func byAddress(d Domain) []string        { return labels("addr", d.Addresses...) }
func byOwnerOrAddress(d Domain) []string { return append(byOwner(d), byAddress(d)...) }
func bySiteOrAddress(d Domain) []string  { return append(labels("site", d.Site), byAddress(d)...) }
func byAll(d Domain) []string            { return append(byOwner(d), bySiteOrAddress(d)...) }

// widths are the ways, the most careful first, and ownersFirst those where owners are verified and
// there are enough of them. Peers that are together in one are so in all before it, but for the last
// of widths: what a peer says of its owner comes behind all else, so that with as many owners
// as machines a liar parts no more than if it said nothing.
var (
	widths      = []width{byAll, bySiteOrAddress, byAddress, byOwner}
	ownersFirst = []width{byAll, byOwnerOrAddress, byOwner}
)

// widthsOf returns the ways to look at peers that are to run want processes of n ranks.
func widthsOf(peers []PeerSlots, n, want int) []width {
	if !slices.ContainsFunc(peers, func(p PeerSlots) bool { return p.Domain.Verified }) {
		return widths
	}
	owners, _ := group(peers, byOwner)
	if apart(peers, owners, n) < want {
		return widths
	}
	return ownersFirst
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

// groups numbers the peers, which are to run want processes of n ranks, for each width, so that two have
// the same number if they may fail together: directly, or by way of others that fail with both. Widths in
// which every peer is on its own are left out.
func groups(peers []PeerSlots, n, want int) [][]int {
	var out [][]int
	for _, names := range widthsOf(peers, n, want) {
		if g, any := group(peers, names); any {
			out = append(out, g)
		}
	}
	return out
}

// group numbers the peers by the first of each group, and reports whether there is one of several.
func group(peers []PeerSlots, names width) (of []int, any bool) {
	of = make([]int, len(peers)) // the way to the group's first, as in every union-find
	first := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	seen := map[string]int{}
	for i, p := range peers {
		of[i] = i
		for _, name := range names(p.Domain) {
			if j, ok := seen[name]; ok {
				a, b := first(i), first(j)
				of[max(a, b)] = min(a, b)
			}
			seen[name] = i
		}
	}
	for i := range of {
		of[i] = first(i)
		any = any || of[i] != i
	}
	return of, any
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
	kinds := []width{byOwner, func(d Domain) []string { return labels("site", d.Site) }, byAddress} // ever worse
	if d.Verified {
		kinds = []width{kinds[1], kinds[2], byOwner}
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
