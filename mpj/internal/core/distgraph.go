package core

import (
	"cmp"
	"fmt"
	"slices"
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

// DistGraphCreateAdjacent makes d a communicator of the ranks of c in a graph in which this rank has
// edges from sources and to dests. DistGraphNeighbors returns the weights; nil weights at all ranks
// mean an unweighted graph. Both ranks of an edge must specify the edge, equally often. All ranks of
// c call DistGraphCreateAdjacent. call is the name of the program's function.
func DistGraphCreateAdjacent(c, d *Comm, call string, sources, sourceWeights, dests, destWeights []int) error {
	if err := c.CheckIntra(); err != nil {
		return err
	}
	if c.process.checks {
		if err := Agree(c, call, plainCall(fmt.Sprintf("sources %v, dests %v", sources, dests)), nil); err != nil {
			return err
		}
	}
	t := &distGraph{
		sources: slices.Clone(sources), sourceWeights: slices.Clone(sourceWeights),
		dests: slices.Clone(dests), destWeights: slices.Clone(destWeights),
		weighted: sourceWeights != nil || destWeights != nil,
	}
	invalid := cmp.Or(checkEdges(c, "sources", sources, sourceWeights, t.weighted), checkEdges(c, "dests", dests, destWeights, t.weighted))
	return formGraph(c, d, t, invalid)
}

// checkEdges returns an error if an edge leads to an invalid rank, or if the weights are invalid or
// incomplete.
func checkEdges(c *Comm, name string, ranks, weights []int, weighted bool) error {
	for i, r := range ranks {
		if r < 0 || r >= c.size {
			return c.Failf(ErrRank, "%s[%d] is %d, ranks are 0..%d", name, i, r, c.size-1)
		}
	}
	if weighted && len(weights) != len(ranks) {
		return c.Failf(ErrArg, "%d %s and %d weights", len(ranks), name, len(weights))
	}
	for i, w := range weights {
		if w < 0 {
			return c.Failf(ErrArg, "weight %d of %s is %d", i, name, w)
		}
	}
	return nil
}

// formGraph makes d the communicator of graph t. invalid is the reason why this rank's arguments are
// invalid, or nil. All ranks verify that their edges match: summed over all ranks, the hashes of
// outgoing edges must equal the hashes of incoming edges.
func formGraph(c, d *Comm, t *distGraph, invalid error) error {
	var difference int64
	for _, to := range t.dests {
		difference += digest([]int{c.rank, to})
	}
	for _, from := range t.sources {
		difference -= digest([]int{from, c.rank})
	}
	d.topology = t
	numbers := []int64{int64(flag(invalid != nil)), difference, int64(flag(t.weighted))}
	_, err := Form(c, d, numbers, func(all []int64) error {
		return cmp.Or(invalid, matchEdges(c, all))
	}, func([]int64) ([]int, error) { return unordered(c.size)(), nil })
	return err
}

// matchEdges returns an error if the edges of all ranks do not match. all contains the numbers of
// each rank: whether its arguments are invalid, its difference of hashes, and whether it passes
// weights.
func matchEdges(c *Comm, all []int64) error {
	var sum int64
	for i := 0; i < len(all); i += 3 {
		if all[i] != 0 {
			return c.Failf(ErrTopology, "rank %d passes invalid arguments", i/3)
		}
		if all[i+2] != all[2] {
			return c.Failf(ErrArg, "only one of ranks 0 and %d passes weights", i/3)
		}
		sum += all[i+1]
	}
	if sum != 0 {
		return c.Failf(ErrTopology, "an edge was specified by only one of its ranks")
	}
	return nil
}

// DistGraphCreate is DistGraphCreateAdjacent for edges that any rank may specify. This rank
// specifies degrees[i] edges from sources[i]; dests lists the destinations of these edges, one
// source after the other. weights, unless nil at all ranks, lists the weights of these edges in the
// same order. The edges of a rank are ordered by the rank that specified them.
func DistGraphCreate(c, d *Comm, call string, sources, degrees, dests, weights []int) error {
	if err := c.CheckIntra(); err != nil {
		return err
	}
	if c.process.checks {
		if err := Agree(c, call, plainCall(fmt.Sprintf("sources %v, degrees %v, dests %v", sources, degrees, dests)), nil); err != nil {
			return err
		}
	}
	out, invalid := edgesBySource(c, sources, degrees, dests, weights)
	t, err := collectEdges(c, out)
	if err != nil {
		return err
	}
	t.weighted = weights != nil
	return formGraph(c, d, t, invalid)
}

// A givenEdge is an edge that is sent from the rank that specified it to its two ends.
type givenEdge struct{ from, to, weight int }

// edgesBySource returns the edges that the arguments of DistGraphCreate specify.
func edgesBySource(c *Comm, sources, degrees, dests, weights []int) ([]givenEdge, error) {
	if len(degrees) != len(sources) {
		return nil, c.Failf(ErrArg, "%d sources and %d degrees", len(sources), len(degrees))
	}
	err := cmp.Or(checkEdges(c, "sources", sources, nil, false), checkEdges(c, "dests", dests, weights, weights != nil))
	if err != nil {
		return nil, err
	}
	var given []givenEdge
	for i, n := range degrees {
		if n < 0 || n > len(dests)-len(given) {
			return nil, c.Failf(ErrArg, "degrees[%d] is %d, of %d destinations", i, n, len(dests))
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
		return nil, c.Failf(ErrArg, "%d destinations, the degrees add up to %d", len(dests), len(given))
	}
	return given, nil
}

// collectEdges sends all specified edges to both of their ends, and returns the edges of this rank.
func collectEdges(c *Comm, given []givenEdge) (*distGraph, error) {
	mail := make([][]int64, c.size)
	for _, e := range given {
		numbers := []int64{int64(e.from), int64(e.to), int64(e.weight)}
		mail[e.from] = append(mail[e.from], numbers...)
		if e.to != e.from {
			mail[e.to] = append(mail[e.to], numbers...)
		}
	}
	t := new(distGraph)
	came, err := DeliverAll(c, mail, 3)
	if err != nil {
		return nil, err
	}
	for _, numbers := range came {
		for i := 0; i < len(numbers); i += 3 {
			t.add(c.rank, int(numbers[i]), int(numbers[i+1]), int(numbers[i+2]))
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
func distGraphOf(c *Comm) (*distGraph, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, ok := c.topology.(*distGraph)
	if !ok {
		return nil, c.Failf(ErrTopology, "communicator %q has %v", c.Name(), TopologyOf(c))
	}
	return t, nil
}

// DistGraphNeighborsCount returns the number of edges to and from this rank, and whether they have
// weights.
func DistGraphNeighborsCount(c *Comm) (in, out int, weighted bool, err error) {
	t, err := distGraphOf(c)
	if err != nil {
		return 0, 0, false, err
	}
	return len(t.sources), len(t.dests), t.weighted, nil
}

// DistGraphNeighbors returns the ranks at the other ends of the edges to and from this rank, in the
// order of the blocks of neighbourhood collectives. It also returns the weights of the edges, which
// are nil in an unweighted graph.
func DistGraphNeighbors(c *Comm) (sources, sourceWeights, dests, destWeights []int, err error) {
	t, err := distGraphOf(c)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	sources, dests = slices.Clone(t.sources), slices.Clone(t.dests)
	if t.weighted {
		sourceWeights, destWeights = slices.Clone(t.sourceWeights), slices.Clone(t.destWeights)
	}
	return sources, sourceWeights, dests, destWeights, nil
}
