package submit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

const (
	// nearest is the round-trip time below which differences are not significant: they depend on
	// how busy the machines are.
	nearest = time.Millisecond

	// gap is the least ratio of the distance between clusters to the distances within them.
	gap = 4
)

// clusters numbers n peers so that nearby peers have the same number. It joins the closest ones
// first (single linkage), and stops at the first distance that is at least gap times the longest
// before it. Peers at an unknown distance are joined through others or not at all. If no distance
// is known, all are in one cluster.
func clusters(n int, distance func(a, b int) (time.Duration, bool)) []int {
	type edge struct {
		length time.Duration
		a, b   int
	}
	var edges []edge
	for a := range n {
		for b := range a {
			if d, ok := distance(a, b); ok {
				edges = append(edges, edge{max(d, nearest), b, a})
			}
		}
	}
	slices.SortFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.length, y.length), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	of := make([]int, n)
	if len(edges) == 0 {
		return of
	}
	for i := range of {
		of[i] = i
	}
	longest := nearest
	for _, e := range edges {
		if of[e.a] == of[e.b] {
			continue
		}
		if e.length >= gap*longest {
			break
		}
		longest = e.length
		from, to := max(of[e.a], of[e.b]), min(of[e.a], of[e.b])
		for i := range of {
			if of[i] == from {
				of[i] = to
			}
		}
	}
	return of
}

// places describes where the ranks run: on which machine and in which cluster of nearby machines.
// Collectives depend on it and must be equal at all replicas. So two ranks share a place only if
// all their replicas do.
func (m *membership) places() []*jobpb.Place {
	machines := m.machines()
	near := make([]int, len(m.links))
	if len(m.links) <= jobpb.MaxMeasured {
		near = clusters(len(m.links), func(a, b int) (time.Duration, bool) { return m.distance(machines, a, b) })
	}
	at := make(map[*link]int)
	for i, l := range m.links {
		at[l] = i
	}
	n, r := m.j.req.N, m.j.req.R
	number := func(of []int) func(rank int) int {
		seen := make(map[string]int)
		return func(rank int) int {
			var key []int
			for k := range r {
				key = append(key, of[at[m.runsOn[view.Process{Rank: rank, Replica: k}]]])
			}
			name := fmt.Sprint(key)
			if _, ok := seen[name]; !ok {
				seen[name] = len(seen)
			}
			return seen[name]
		}
	}
	machine, cluster := number(machines), number(near)
	places := make([]*jobpb.Place, n)
	for rank := range places {
		places[rank] = &jobpb.Place{Machine: uint32(machine(rank)), Cluster: uint32(cluster(rank))}
	}
	return places
}

// machines numbers the machines of the peers. A peer that does not name its machine gets a number
// of its own.
func (m *membership) machines() []int {
	known := make(map[string]int)
	out := make([]int, len(m.links))
	for i, l := range m.links {
		out[i] = i
		if l.reported.machine != "" {
			if _, ok := known[l.reported.machine]; !ok {
				known[l.reported.machine] = i
			}
			out[i] = known[l.reported.machine]
		}
	}
	return out
}

// distance returns the round-trip time between two peers, if either knows it.
func (m *membership) distance(machines []int, a, b int) (d time.Duration, ok bool) {
	if machines[a] == machines[b] {
		return 0, true
	}
	there, ok1 := m.links[a].reported.distances[m.links[b].peer]
	back, ok2 := m.links[b].reported.distances[m.links[a].peer]
	switch {
	case ok1 && ok2:
		return min(there, back), true
	case ok1:
		return there, true
	}
	return back, ok2
}
