package mpj

import (
	"fmt"
	"hash/fnv"

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
func (t Topology) String() string {
	names := [...]string{"NoTopology", "CartTopology", "GraphTopology", "DistGraphTopology"}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("Topology(%d)", int(t))
	}
	return names[t]
}

// A topology describes the arrangement of the ranks of a communicator.
type topology interface {
	kind() Topology
	// edges returns the edges to and from rank, the rank of this process, in the order of the blocks
	// of neighbourhood collectives.
	edges(rank int) (in, out []edge)
}

// An edge leads from or to a rank, which may be ProcNull. If two ranks share several edges, the tag
// pairs an outgoing edge of one rank with an incoming edge of the other. Edges with the same tag
// have the same order at both ranks.
type edge struct {
	rank int
	tag  int32
}

// TopoTest returns the topology of c.
func (c *Comm) TopoTest() Topology {
	if c.topology == nil {
		return NoTopology
	}
	return c.topology.kind()
}

// carve creates a communicator of the ranks of c that order returns, in that order. It returns nil at the other
// ranks. All ranks of c call carve, and must pass the same arguments; invalid is the reason why the
// arguments are invalid, or nil.
func (c *Comm) carve(op string, arguments []int, order func() []int, invalid error) (*Comm, error) {
	d, mine := c.heir(), digest(arguments)
	judge := func(all []int64) error {
		for i, theirs := range all {
			if theirs != mine {
				return failf(ErrArg, op, "ranks %d and %d pass different arguments", c.Rank(), i)
			}
		}
		return invalid
	}
	member, err := core.Form(&c.base, &d.base, []int64{mine}, judge, func([]int64) ([]int, error) { return order(), nil })
	return c.created(op, d, member, err)
}

// digest returns a hash of numbers in order.
func digest(numbers []int) int64 {
	h := fnv.New64a()
	for _, n := range numbers {
		h.Write(bytesOf([]int64{int64(n)}))
	}
	return int64(h.Sum64())
}

// unordered returns a function that returns the first n ranks in their present order.
func unordered(n int) func() []int {
	return func() []int {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		return order
	}
}
