package lifetime

// FewestCut returns the size of the smallest sets of crashes for which Cut returns true. Apart from their place
// on the ring, all members are alike. Some smallest set therefore leaves member 0 alive and isolates it from
// news of another member. By Menger's theorem, the least number of crashes that separates a pair is the number
// of paths between the two that share no member. FewestCut counts these by augmenting paths (Even 1975).
func (g Gossip) FewestCut() int {
	fewest := g.n - 1 // a single survivor has no other member to hear of
	if g.live {
		return fewest
	}
	neighbours := g.to(0)
	for target := 1; target < g.n; target++ {
		if neighbours.Has(target) {
			continue // no crashes of other members separate them
		}
		f := g.network()
		for paths := 0; ; paths++ {
			if paths == fewest || !f.augment(outOf(0), into(target)) {
				fewest = paths
				break
			}
		}
	}
	return fewest
}

// to returns the members that member i sends to.
func (g Gossip) to(i int) Set {
	var s Set
	for _, d := range g.distances {
		s.add(modulo(i+d, g.n))
	}
	return s
}

// A flow is a network in which each arc carries at most one path. Each member has two nodes with one arc
// from the first to the second.
type flow struct {
	arcs []arc
	from [][]int // per node: outgoing arcs
}

// arc 2k+1 is the reverse of arc 2k.
type arc struct {
	to   int
	room bool
}

func into(member int) int  { return 2 * member }
func outOf(member int) int { return 2*member + 1 }

func (g Gossip) network() *flow {
	f := &flow{from: make([][]int, 2*g.n)}
	for i := range g.n {
		f.join(into(i), outOf(i))
		to := g.to(i)
		for j := range g.n {
			if to.Has(j) {
				f.join(outOf(i), into(j))
			}
		}
	}
	return f
}

func (f *flow) join(a, b int) {
	f.from[a] = append(f.from[a], len(f.arcs))
	f.from[b] = append(f.from[b], len(f.arcs)+1)
	f.arcs = append(f.arcs, arc{b, true}, arc{a, false})
}

// augment finds one more path, breadth first. It returns false if there is none.
func (f *flow) augment(source, sink int) bool {
	by := make([]int, len(f.from)) // per node: the arc by which it was first reached, plus one
	queue := []int{source}
	for len(queue) > 0 && by[sink] == 0 {
		place := queue[0]
		queue = queue[1:]
		for _, a := range f.from[place] {
			if to := f.arcs[a].to; f.arcs[a].room && by[to] == 0 && to != source {
				by[to] = a + 1
				queue = append(queue, to)
			}
		}
	}
	if by[sink] == 0 {
		return false
	}
	for place := sink; place != source; {
		a := by[place] - 1
		f.arcs[a].room, f.arcs[a^1].room = false, true
		place = f.arcs[a^1].to
	}
	return true
}
