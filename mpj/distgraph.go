package mpj

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// A distGraph contains the edges of this rank in a distributed graph.
type distGraph struct {
	sources, sourceWeights []int
	dests, destWeights     []int
	weighted               bool
}

func (*distGraph) kind() Topology { return DistGraphTopology }

func (t *distGraph) edges(int) (in, out []edge) {
	for _, s := range t.sources {
		in = append(in, edge{rank: s})
	}
	for _, d := range t.dests {
		out = append(out, edge{rank: d})
	}
	return in, out
}

// DistGraphCreateAdjacent arranges the ranks of c in a graph in which this rank has edges from
// sources and to dests. DistGraphNeighbors returns the weights; nil weights at all ranks mean an
// unweighted graph. Both ranks of an edge must specify the edge, equally often. With reorder, ranks
// may be renumbered; the present implementation does not renumber them. All ranks of c call
// DistGraphCreateAdjacent.
func (c *Comm) DistGraphCreateAdjacent(sources, sourceWeights, dests, destWeights []int, reorder bool) (*Comm, error) {
	const op = "DistGraphCreateAdjacent"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree(op, plainCall(fmt.Sprintf("sources %v, dests %v", sources, dests)), nil); err != nil {
			return nil, err
		}
	}
	t := &distGraph{
		sources: slices.Clone(sources), sourceWeights: slices.Clone(sourceWeights),
		dests: slices.Clone(dests), destWeights: slices.Clone(destWeights),
		weighted: sourceWeights != nil || destWeights != nil,
	}
	invalid := cmp.Or(c.checkEdges(op, "sources", sources, sourceWeights, t.weighted),
		c.checkEdges(op, "dests", dests, destWeights, t.weighted))
	return c.withGraph(op, t, invalid)
}

// checkEdges returns an error if an edge leads to an invalid rank, or if the weights are invalid or
// incomplete.
func (c *Comm) checkEdges(op, name string, ranks, weights []int, weighted bool) error {
	for i, r := range ranks {
		if r < 0 || r >= c.Size() {
			return failf(ErrRank, op, "%s[%d] is %d, ranks are 0..%d", name, i, r, c.Size()-1)
		}
	}
	if weighted && len(weights) != len(ranks) {
		return failf(ErrArg, op, "%d %s and %d weights", len(ranks), name, len(weights))
	}
	for i, w := range weights {
		if w < 0 {
			return failf(ErrArg, op, "weight %d of %s is %d", i, name, w)
		}
	}
	return nil
}

// withGraph creates the communicator of graph t. invalid is the reason why this rank's arguments are
// invalid, or nil. All ranks verify that their edges match: summed over all ranks, the hashes of
// outgoing edges must equal the hashes of incoming edges.
func (c *Comm) withGraph(op string, t *distGraph, invalid error) (*Comm, error) {
	var difference int64
	for _, d := range t.dests {
		difference += digest([]int{c.Rank(), d})
	}
	for _, s := range t.sources {
		difference -= digest([]int{s, c.Rank()})
	}
	numbers := []int64{int64(flag(invalid != nil)), difference, int64(flag(t.weighted))}
	d := c.heir()
	member, err := core.Form(&c.base, &d.base, numbers, func(all []int64) error {
		return cmp.Or(invalid, matchEdges(op, all))
	}, func([]int64) ([]int, error) { return unordered(c.Size())(), nil })
	d.topology = t
	return c.created(op, d, member, err)
}

// matchEdges returns an error if the edges of all ranks do not match. all contains the numbers of
// each rank: whether its arguments are invalid, its difference of hashes, and whether it passes
// weights.
func matchEdges(op string, all []int64) error {
	var sum int64
	for i := 0; i < len(all); i += 3 {
		if all[i] != 0 {
			return failf(ErrTopology, op, "rank %d passes invalid arguments", i/3)
		}
		if all[i+2] != all[2] {
			return failf(ErrArg, op, "only one of ranks 0 and %d passes weights", i/3)
		}
		sum += all[i+1]
	}
	if sum != 0 {
		return failf(ErrTopology, op, "an edge was specified by only one of its ranks")
	}
	return nil
}

// DistGraphCreate is DistGraphCreateAdjacent for edges that any rank may specify. This rank
// specifies degrees[i] edges from sources[i]; dests lists the destinations of these edges, one
// source after the other. weights, unless nil at all ranks, lists the weights of these edges in the
// same order. The edges of a rank are ordered by the rank that specified them.
func (c *Comm) DistGraphCreate(sources, degrees, dests, weights []int, reorder bool) (*Comm, error) {
	const op = "DistGraphCreate"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree(op, plainCall(fmt.Sprintf("sources %v, degrees %v, dests %v", sources, degrees, dests)), nil); err != nil {
			return nil, err
		}
	}
	out, invalid := c.edgesBySource(op, sources, degrees, dests, weights)
	t, err := c.collectEdges(out)
	if err != nil {
		return nil, c.wrap(op, err)
	}
	t.weighted = weights != nil
	return c.withGraph(op, t, invalid)
}

// A givenEdge is an edge that is sent from the rank that specified it to its two ends.
type givenEdge struct{ from, to, weight int }

// edgesBySource returns the edges that the arguments of DistGraphCreate specify.
func (c *Comm) edgesBySource(op string, sources, degrees, dests, weights []int) ([]givenEdge, error) {
	if len(degrees) != len(sources) {
		return nil, failf(ErrArg, op, "%d sources and %d degrees", len(sources), len(degrees))
	}
	err := cmp.Or(c.checkEdges(op, "sources", sources, nil, false), c.checkEdges(op, "dests", dests, weights, weights != nil))
	if err != nil {
		return nil, err
	}
	var given []givenEdge
	for i, n := range degrees {
		if n < 0 || n > len(dests)-len(given) {
			return nil, failf(ErrArg, op, "degrees[%d] is %d, of %d destinations", i, n, len(dests))
		}
		for range n {
			e := givenEdge{from: sources[i], to: dests[len(given)]}
			if weights != nil {
				e.weight = weights[len(given)]
			}
			given = append(given, e)
		}
	}
	if len(given) != len(dests) {
		return nil, failf(ErrArg, op, "%d destinations, the degrees add up to %d", len(dests), len(given))
	}
	return given, nil
}

// collectEdges sends all specified edges to both of their ends, and returns the edges of this rank.
func (c *Comm) collectEdges(given []givenEdge) (*distGraph, error) {
	mail := make([][]int64, c.Size())
	for _, e := range given {
		numbers := []int64{int64(e.from), int64(e.to), int64(e.weight)}
		mail[e.from] = append(mail[e.from], numbers...)
		if e.to != e.from {
			mail[e.to] = append(mail[e.to], numbers...)
		}
	}
	t := new(distGraph)
	came, err := core.DeliverAll(&c.base, mail, 3)
	if err != nil {
		return nil, err
	}
	for _, numbers := range came {
		for i := 0; i < len(numbers); i += 3 {
			t.add(c.Rank(), int(numbers[i]), int(numbers[i+1]), int(numbers[i+2]))
		}
	}
	return t, nil
}

// add adds an edge to t if rank is one of its ends.
func (t *distGraph) add(rank, from, to, weight int) {
	if from == rank {
		t.dests, t.destWeights = append(t.dests, to), append(t.destWeights, weight)
	}
	if to == rank {
		t.sources, t.sourceWeights = append(t.sources, from), append(t.sourceWeights, weight)
	}
}

// distGraphOf returns the distributed graph of c.
func (c *Comm) distGraphOf(op string) (*distGraph, error) {
	if err := c.check(op); err != nil {
		return nil, err
	}
	t, ok := c.topology.(*distGraph)
	if !ok {
		return nil, c.failf(ErrTopology, op, "communicator %q has %v", c.Name(), c.TopoTest())
	}
	return t, nil
}

// DistGraphNeighborsCount returns the number of edges to and from this rank, and whether they have
// weights.
func (c *Comm) DistGraphNeighborsCount() (in, out int, weighted bool, err error) {
	t, err := c.distGraphOf("DistGraphNeighborsCount")
	if err != nil {
		return 0, 0, false, err
	}
	return len(t.sources), len(t.dests), t.weighted, nil
}

// DistGraphNeighbors returns the ranks at the other ends of the edges to and from this rank, in the
// order of the blocks of neighbourhood collectives. It also returns the weights of the edges, which
// are nil in an unweighted graph.
func (c *Comm) DistGraphNeighbors() (sources, sourceWeights, dests, destWeights []int, err error) {
	t, err := c.distGraphOf("DistGraphNeighbors")
	if err != nil {
		return nil, nil, nil, nil, err
	}
	sources, dests = slices.Clone(t.sources), slices.Clone(t.dests)
	if t.weighted {
		sourceWeights, destWeights = slices.Clone(t.sourceWeights), slices.Clone(t.destWeights)
	}
	return sources, sourceWeights, dests, destWeights, nil
}
