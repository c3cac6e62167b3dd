package core

import "slices"

// A graph is a graph that is stored completely at every rank, in MPI's representation: the
// neighbours of rank i are list[index[i-1]:index[i]].
type graph struct {
	index, list []int
	symmetric   bool
}

func (*graph) kind() Topology { return GraphTopology }

// edges returns the neighbours of rank as in and as out. Neighbourhood collectives require a
// symmetric graph, in which in and out are the same.
func (t *graph) edges(rank int) (in, out []edge) {
	for _, n := range t.neighbors(rank) {
		in = append(in, edge{rank: n})
	}
	return in, in
}

func (t *graph) neighbors(rank int) []int {
	from := 0
	if rank > 0 {
		from = t.index[rank-1]
	}
	return t.list[from:t.index[rank]]
}

// isSymmetric reports whether each edge exists equally often in both directions.
func (t *graph) isSymmetric() bool {
	type pair struct{ from, to int }
	count := make(map[pair]int)
	for i := range t.index {
		for _, j := range t.neighbors(i) {
			count[pair{i, j}]++
			count[pair{j, i}]--
		}
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// GraphCreate makes d the communicator of a graph of the first len(index) ranks of c, and reports
// whether this rank is in the graph. The neighbours of rank 0 are edges[:index[0]], and the
// neighbours of rank i are edges[index[i-1]:index[i]]. With reorder, ranks may be renumbered; the
// present implementation does not renumber them. All ranks of c call GraphCreate with the same
// arguments. call is the name of the program's function.
func GraphCreate(c, d *Comm, call string, index, edges []int, reorder bool) (member bool, err error) {
	if err := c.CheckIntra(); err != nil {
		return false, err
	}
	if c.process.checks {
		if err := Agree(c, call, alikeCall("index %v, edges %v, reorder %t", index, edges, reorder), nil); err != nil {
			return false, err
		}
	}
	t, invalid := newGraph(c, index, edges)
	d.topology = t
	return carve(c, d, slices.Concat([]int{flag(reorder)}, index, edges), unordered(len(index)), invalid)
}

// newGraph returns the graph that the arguments describe.
func newGraph(c *Comm, index, edges []int) (*graph, error) {
	if len(index) > c.size {
		return nil, c.Failf(ErrTopology, "%d nodes for %d ranks", len(index), c.size)
	}
	last := 0
	for i, end := range index {
		if end < last || end > len(edges) {
			return nil, c.Failf(ErrTopology, "index[%d] is %d: want %d to %d", i, end, last, len(edges))
		}
		last = end
	}
	if last != len(edges) {
		return nil, c.Failf(ErrTopology, "%d edges, the last index is %d", len(edges), last)
	}
	for i, to := range edges {
		if to < 0 || to >= len(index) {
			return nil, c.Failf(ErrTopology, "edges[%d] is %d, ranks are 0..%d", i, to, len(index)-1)
		}
	}
	t := &graph{index: slices.Clone(index), list: slices.Clone(edges)}
	t.symmetric = t.isSymmetric()
	return t, nil
}

// graphOf returns the graph of c.
func graphOf(c *Comm) (*graph, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, ok := c.topology.(*graph)
	if !ok {
		return nil, c.Failf(ErrTopology, "communicator %q has %v", c.Name(), TopologyOf(c))
	}
	return t, nil
}

// GraphdimsGet returns the numbers of ranks and edges in the graph of c.
func GraphdimsGet(c *Comm) (nodes, edges int, err error) {
	t, err := graphOf(c)
	if err != nil {
		return 0, 0, err
	}
	return len(t.index), len(t.list), nil
}

// GraphGet returns the arguments with which GraphCreate made the graph of c.
func GraphGet(c *Comm) (index, edges []int, err error) {
	t, err := graphOf(c)
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(t.index), slices.Clone(t.list), nil
}

// GraphNeighbors returns the neighbours of rank, in the order given to GraphCreate. The result must
// not be changed.
func GraphNeighbors(c *Comm, rank int) ([]int, error) {
	t, err := graphOf(c)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.size {
		return nil, c.Failf(ErrRank, "rank %d, ranks are 0..%d", rank, c.size-1)
	}
	return t.neighbors(rank), nil
}

// GraphMap returns the rank that this process would have in the graph that GraphCreate makes with
// reorder, or Undefined if the process would be outside the graph.
func GraphMap(c *Comm, index, edges []int) (int, error) {
	if err := c.CheckIntra(); err != nil {
		return Undefined, err
	}
	if _, err := newGraph(c, index, edges); err != nil {
		return Undefined, err
	}
	if c.rank >= len(index) {
		return Undefined, nil
	}
	return c.rank, nil
}
