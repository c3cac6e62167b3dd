package reservation

// A Domain says what a peer may lose together with others: two replicas of a rank are kept
// apart by it when there is a choice.
type Domain struct {
	Addresses []string `json:"addresses,omitempty"` // of its machine or its router, in any one way of writing them
	Site      string   `json:"site,omitempty"`      // as its owner declares it; empty: not
}

// widths are the ways to see which peers fail together, the most careful first. Peers that
// are together in one are so in all before it.
var widths = []func(Domain) []string{
	func(d Domain) []string { return append(labels("site", d.Site), labels("addr", d.Addresses...)...) },
	func(d Domain) []string { return labels("addr", d.Addresses...) },
}

func labels(kind string, names ...string) (out []string) {
	for _, n := range names {
		if n != "" {
			out = append(out, kind+" "+n)
		}
	}
	return out
}

// groups numbers the peers, for each width, so that two have the same number if they may
// fail together: directly, or by way of others that fail with both. Widths in which every
// peer is on its own are left out.
func groups(peers []PeerSlots) [][]int {
	var out [][]int
	for _, names := range widths {
		if g, any := group(peers, names); any {
			out = append(out, g)
		}
	}
	return out
}

// group numbers the peers by the first of each group, and reports whether there is one of several.
func group(peers []PeerSlots, names func(Domain) []string) (of []int, any bool) {
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
