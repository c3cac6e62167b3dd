package mpj

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

// GraphCreate arranges the first len(index) ranks of c in a graph and returns its communicator, or
// nil at the remaining ranks. The neighbours of rank 0 are edges[:index[0]], and the neighbours of
// rank i are edges[index[i-1]:index[i]]. With reorder, ranks may be renumbered; the present
// implementation does not renumber them. All ranks of c call GraphCreate with the same arguments.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	if err := c.checkIntra("GraphCreate"); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree("GraphCreate", alikeCall("index %v, edges %v, reorder %t", index, edges, reorder), nil); err != nil {
			return nil, err
		}
	}
	t, invalid := c.newGraph("GraphCreate", index, edges)
	arguments := slices.Concat([]int{flag(reorder)}, index, edges)
	d, err := c.carve("GraphCreate", arguments, unordered(len(index)), invalid)
	if d != nil {
		d.topology = t
	}
	return d, err
}

// newGraph returns the graph that the arguments describe.
func (c *Comm) newGraph(op string, index, edges []int) (*graph, error) {
	if len(index) > c.Size() {
		return nil, failf(ErrTopology, op, "%d nodes for %d ranks", len(index), c.Size())
	}
	last := 0
	for i, end := range index {
		if end < last || end > len(edges) {
			return nil, failf(ErrTopology, op, "index[%d] is %d: want %d to %d", i, end, last, len(edges))
		}
		last = end
	}
	if last != len(edges) {
		return nil, failf(ErrTopology, op, "%d edges, the last index is %d", len(edges), last)
	}
	for i, to := range edges {
		if to < 0 || to >= len(index) {
			return nil, failf(ErrTopology, op, "edges[%d] is %d, ranks are 0..%d", i, to, len(index)-1)
		}
	}
	t := &graph{index: slices.Clone(index), list: slices.Clone(edges)}
	t.symmetric = t.isSymmetric()
	return t, nil
}

// graphOf returns the graph of c.
func (c *Comm) graphOf(op string) (*graph, error) {
	if err := c.check(op); err != nil {
		return nil, err
	}
	t, ok := c.topology.(*graph)
	if !ok {
		return nil, c.failf(ErrTopology, op, "communicator %q has %v", c.Name(), c.TopoTest())
	}
	return t, nil
}

// GraphdimsGet returns the numbers of ranks and edges in the graph of c.
func (c *Comm) GraphdimsGet() (nodes, edges int, err error) {
	t, err := c.graphOf("GraphdimsGet")
	if err != nil {
		return 0, 0, err
	}
	return len(t.index), len(t.list), nil
}

// GraphGet returns the arguments with which GraphCreate made the graph of c.
func (c *Comm) GraphGet() (index, edges []int, err error) {
	t, err := c.graphOf("GraphGet")
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(t.index), slices.Clone(t.list), nil
}

// GraphNeighborsCount returns the number of neighbours of rank.
func (c *Comm) GraphNeighborsCount(rank int) (int, error) {
	n, err := c.graphNeighbors("GraphNeighborsCount", rank)
	return len(n), err
}

// GraphNeighbors returns the neighbours of rank, in the order given to GraphCreate.
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	n, err := c.graphNeighbors("GraphNeighbors", rank)
	return slices.Clone(n), err
}

func (c *Comm) graphNeighbors(op string, rank int) ([]int, error) {
	t, err := c.graphOf(op)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.Size() {
		return nil, c.failf(ErrRank, op, "rank %d, ranks are 0..%d", rank, c.Size()-1)
	}
	return t.neighbors(rank), nil
}

// GraphMap returns the rank that this process would have in the graph that GraphCreate makes with
// reorder, or Undefined if the process would be outside the graph.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	if err := c.checkIntra("GraphMap"); err != nil {
		return Undefined, err
	}
	if _, err := c.newGraph("GraphMap", index, edges); err != nil {
		return Undefined, c.wrap("GraphMap", err)
	}
	if c.Rank() >= len(index) {
		return Undefined, nil
	}
	return c.Rank(), nil
}
