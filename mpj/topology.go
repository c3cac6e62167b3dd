package mpj

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// A Topology is the kind of arrangement of the ranks of a communicator.
type Topology int

const (
	// NoTopology means that the communicator has no topology.
	NoTopology Topology = iota
	// CartTopology is a grid, made by CartCreate.
	CartTopology
	// GraphTopology is a graph that is stored completely at every rank, made by GraphCreate.
	GraphTopology
	// DistGraphTopology is a graph of which each rank stores only its own edges, made by
	// DistGraphCreate or DistGraphCreateAdjacent.
	DistGraphTopology
)

// String returns the name of the constant.
func (t Topology) String() string { return core.Topology(t).String() }

// TopoTest returns the topology of c.
func (c *Comm) TopoTest() Topology {
	return Topology(core.TopologyOf(&c.base))
}

// CartCreate arranges the first ranks of c in a grid with len(dims) dimensions, which is periodic in
// dimension i if periods[i] is true. It returns the communicator of the grid, or nil at ranks
// outside the grid. With reorder, ranks may be renumbered so that neighbours are on the same
// machine. All ranks of c call CartCreate with the same arguments.
func (c *Comm) CartCreate(dims []int, periods []bool, reorder bool) (*Comm, error) {
	const op = "CartCreate"
	return c.derive(op, func(d *core.Comm) (member bool, err error) {
		return core.CartCreate(&c.base, d, op, dims, periods, reorder)
	})
}

// CartdimGet returns the number of dimensions of the grid of c.
func (c *Comm) CartdimGet() (int, error) {
	n, err := core.CartdimGet(c.core())
	return n, errorOf("CartdimGet", err)
}

// CartGet returns the grid of c, and the coordinates of this rank in it.
func (c *Comm) CartGet() (dims []int, periods []bool, coords []int, err error) {
	dims, periods, coords, err = core.CartGet(c.core())
	return dims, periods, coords, errorOf("CartGet", err)
}

// CartRank returns the rank at coords. Coordinates outside a periodic dimension are wrapped.
func (c *Comm) CartRank(coords []int) (int, error) {
	rank, err := core.CartRank(c.core(), coords)
	return rank, errorOf("CartRank", err)
}

// CartCoords returns the coordinates of rank.
func (c *Comm) CartCoords(rank int) ([]int, error) {
	coords, err := core.CartCoords(c.core(), rank)
	return coords, errorOf("CartCoords", err)
}

// CartShift returns the rank from which this rank receives, and the rank to which it sends, when
// every rank sends disp steps up in dimension dim, or down if disp is negative. A rank beyond the
// edge of the grid is ProcNull.
func (c *Comm) CartShift(dim, disp int) (source, dest int, err error) {
	source, dest, err = core.CartShift(c.core(), dim, disp)
	return source, dest, errorOf("CartShift", err)
}

// CartSub divides the grid of c into subgrids, such as rows and columns, that keep dimension i if
// remain[i] is true. It returns the subgrid that contains this rank. All ranks of c call CartSub
// with the same argument.
func (c *Comm) CartSub(remain []bool) (*Comm, error) {
	const op = "CartSub"
	return c.derive(op, func(d *core.Comm) (member bool, err error) {
		return true, core.CartSub(&c.base, d, op, remain)
	})
}

// CartMap returns the rank that this process would have in the grid that CartCreate makes with
// reorder, or Undefined if the process would be outside the grid.
func (c *Comm) CartMap(dims []int, periods []bool) (int, error) {
	rank, err := core.CartMap(c.core(), dims, periods)
	return rank, errorOf("CartMap", err)
}

// GraphCreate arranges the first len(index) ranks of c in a graph and returns its communicator, or
// nil at the remaining ranks. The neighbours of rank 0 are edges[:index[0]], and the neighbours of
// rank i are edges[index[i-1]:index[i]]. With reorder, ranks may be renumbered; the present
// implementation does not renumber them. All ranks of c call GraphCreate with the same arguments.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	const op = "GraphCreate"
	return c.derive(op, func(d *core.Comm) (member bool, err error) {
		return core.GraphCreate(&c.base, d, op, index, edges, reorder)
	})
}

// GraphdimsGet returns the numbers of ranks and edges in the graph of c.
func (c *Comm) GraphdimsGet() (nodes, edges int, err error) {
	nodes, edges, err = core.GraphdimsGet(c.core())
	return nodes, edges, errorOf("GraphdimsGet", err)
}

// GraphGet returns the arguments with which GraphCreate made the graph of c.
func (c *Comm) GraphGet() (index, edges []int, err error) {
	index, edges, err = core.GraphGet(c.core())
	return index, edges, errorOf("GraphGet", err)
}

// GraphNeighborsCount returns the number of neighbours of rank.
func (c *Comm) GraphNeighborsCount(rank int) (int, error) {
	n, err := core.GraphNeighbors(c.core(), rank)
	return len(n), errorOf("GraphNeighborsCount", err)
}

// GraphNeighbors returns the neighbours of rank, in the order given to GraphCreate.
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	n, err := core.GraphNeighbors(c.core(), rank)
	return slices.Clone(n), errorOf("GraphNeighbors", err)
}

// GraphMap returns the rank that this process would have in the graph that GraphCreate makes with
// reorder, or Undefined if the process would be outside the graph.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	rank, err := core.GraphMap(c.core(), index, edges)
	return rank, errorOf("GraphMap", err)
}

// DistGraphCreateAdjacent arranges the ranks of c in a graph in which this rank has edges from
// sources and to dests. DistGraphNeighbors returns the weights; nil weights at all ranks mean an
// unweighted graph. Both ranks of an edge must specify the edge, equally often. With reorder, ranks
// may be renumbered; the present implementation does not renumber them. All ranks of c call
// DistGraphCreateAdjacent.
func (c *Comm) DistGraphCreateAdjacent(sources, sourceWeights, dests, destWeights []int, reorder bool) (*Comm, error) {
	const op = "DistGraphCreateAdjacent"
	return c.derive(op, func(d *core.Comm) (member bool, err error) {
		return true, core.DistGraphCreateAdjacent(&c.base, d, op, sources, sourceWeights, dests, destWeights)
	})
}

// DistGraphCreate is DistGraphCreateAdjacent for edges that any rank may specify. This rank
// specifies degrees[i] edges from sources[i]; dests lists the destinations of these edges, one
// source after the other. weights, unless nil at all ranks, lists the weights of these edges in the
// same order. The edges of a rank are ordered by the rank that specified them.
func (c *Comm) DistGraphCreate(sources, degrees, dests, weights []int, reorder bool) (*Comm, error) {
	const op = "DistGraphCreate"
	return c.derive(op, func(d *core.Comm) (member bool, err error) {
		return true, core.DistGraphCreate(&c.base, d, op, sources, degrees, dests, weights)
	})
}

// DistGraphNeighborsCount returns the number of edges to and from this rank, and whether they have
// weights.
func (c *Comm) DistGraphNeighborsCount() (in, out int, weighted bool, err error) {
	in, out, weighted, err = core.DistGraphNeighborsCount(c.core())
	return in, out, weighted, errorOf("DistGraphNeighborsCount", err)
}

// DistGraphNeighbors returns the ranks at the other ends of the edges to and from this rank, in the
// order of the blocks of neighbourhood collectives. It also returns the weights of the edges, which
// are nil in an unweighted graph.
func (c *Comm) DistGraphNeighbors() (sources, sourceWeights, dests, destWeights []int, err error) {
	sources, sourceWeights, dests, destWeights, err = core.DistGraphNeighbors(c.core())
	return sources, sourceWeights, dests, destWeights, errorOf("DistGraphNeighbors", err)
}

// DimsCreate replaces the zeros in dims so that the product of all dimensions is ranks. The
// replacements are as close to each other as possible, in decreasing order. Nonzero dimensions stay
// unchanged, and ranks must be a multiple of their product.
func DimsCreate(ranks int, dims []int) error {
	return errorOf("DimsCreate", core.DimsCreate(ranks, dims))
}
