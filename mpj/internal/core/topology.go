package core

import (
	"fmt"
	"hash/fnv"
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

// TopologyOf returns the kind of topology of c.
func TopologyOf(c *Comm) Topology {
	if c.topology == nil {
		return NoTopology
	}
	return c.topology.kind()
}

// carve makes d a communicator of the ranks of c that order returns, in that order, and reports
// whether this rank is one of them. All ranks of c call carve, and must pass the same arguments;
// invalid is the reason why the arguments are invalid, or nil.
func carve(c, d *Comm, arguments []int, order func() []int, invalid error) (member bool, err error) {
	mine := digest(arguments)
	judge := func(all []int64) error {
		for i, theirs := range all {
			if theirs != mine {
				return c.Failf(ErrArg, "ranks %d and %d pass different arguments", c.rank, i)
			}
		}
		return invalid
	}
	return Form(c, d, []int64{mine}, judge, func([]int64) ([]int, error) { return order(), nil })
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
