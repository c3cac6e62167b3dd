package mpj

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// star returns a star graph, in which rank 0 is the neighbour of all other ranks.
func star(n int) (index, edges []int) {
	edges = numbers(1, 1, n)
	index = []int{len(edges)}
	for range n - 1 {
		edges = append(edges, 0)
		index = append(index, len(edges))
	}
	return index, edges
}

func TestGraphCreate(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := max(1, w.Size()-1)
		index, edges := star(n)
		g, err := w.GraphCreate(index, edges, false)
		if err != nil || g == nil {
			return first(err, want("left over", []bool{w.Rank() >= n}, []bool{true}))
		}
		nodes, count, err1 := g.GraphdimsGet()
		gotIndex, gotEdges, err2 := g.GraphGet()
		hub, err3 := g.GraphNeighbors(0)
		degree, err4 := g.GraphNeighborsCount(n - 1)
		at, err5 := w.GraphMap(index, edges)
		return first(err1, err2, err3, err4, err5,
			want("dims", []int{nodes, count, at}, []int{n, 2 * (n - 1), w.Rank()}),
			want("index", gotIndex, index), want("edges", gotEdges, edges), want("neighbours", hub, numbers(1, 1, n)),
			want("degree", []int{degree}, []int{min(1, n-1)}), works(g, numbers(0, 1, n)...))
	})
}

// A givenEdge is an edge that some rank specifies.
type givenEdge struct{ from, to, weight int }

// A distGraph contains the edges of a rank.
type distGraph struct {
	sources, sourceWeights []int
	dests, destWeights     []int
}

// add adds an edge if rank is one of its ends.
func (t *distGraph) add(rank int, e givenEdge) {
	if e.from == rank {
		t.dests, t.destWeights = append(t.dests, e.to), append(t.destWeights, e.weight)
	}
	if e.to == rank {
		t.sources, t.sourceWeights = append(t.sources, e.from), append(t.sourceWeights, e.weight)
	}
}

// randomGraph returns random edges between n ranks, including loops and parallel edges.
func randomGraph(random *rand.Rand, n int) []givenEdge {
	given := make([]givenEdge, random.IntN(4*n))
	for i := range given {
		given[i] = givenEdge{random.IntN(n), random.IntN(n), random.IntN(100)}
	}
	return given
}

// TestDistGraphCreate lets random ranks specify random edges. Each rank must get its edges, and data
// that is sent along an edge must arrive along that edge.
func TestDistGraphCreate(t *testing.T) {
	seed := rand.Uint64()
	inEveryShape(t, func(w *World) error {
		random := rand.New(rand.NewPCG(seed, uint64(w.Size())))
		given := make([][]givenEdge, w.Size())
		var all distGraph
		for i := range given {
			given[i] = randomGraph(random, w.Size())
			for _, e := range given[i] {
				all.add(w.Rank(), e)
			}
		}
		var sources, degrees, dests, weights []int
		for _, e := range given[w.Rank()] {
			sources, degrees = append(sources, e.from), append(degrees, 1)
			dests, weights = append(dests, e.to), append(weights, e.weight)
		}
		g, err := w.DistGraphCreate(sources, degrees, dests, append([]int{}, weights...), false)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		if err := first(isGraph(g, all), alongEdges(g, all)); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		return works(g, numbers(0, 1, w.Size())...)
	})
}

func isGraph(g *Comm, all distGraph) error {
	s, sw, d, dw, err := g.DistGraphNeighbors()
	in, out, weighted, err2 := g.DistGraphNeighborsCount()
	return first(err, err2, want("sources", s, all.sources), want("source weights", sw, all.sourceWeights),
		want("destinations", d, all.dests), want("destination weights", dw, all.destWeights),
		want("counts", []int{in, out}, []int{len(s), len(d)}), want("weighted", []bool{weighted}, []bool{true}))
}

// alongEdges sends the weight of each edge along the edge. The number of copies is the weight modulo
// 3.
func alongEdges(g *Comm, all distGraph) error {
	out, in := all.destWeights, all.sourceWeights
	got := make([]int, len(in))
	err := first(NeighborAlltoall(g, out, got), want("weights along edges", got, in))
	if err != nil {
		return err
	}
	repeat := func(weights []int) (buf, counts []int) {
		for _, w := range weights {
			counts = append(counts, w%3)
			for range w % 3 {
				buf = append(buf, w)
			}
		}
		return buf, counts
	}
	send, sendCounts := repeat(out)
	wanted, recvCounts := repeat(in)
	recv := make([]int, len(wanted))
	return first(NeighborAlltoallv(g, send, sendCounts, nil, recv, recvCounts, nil), want("repeated weights", recv, wanted))
}

func TestWrongGraphsAreErrorsAtAllRanks(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(w *World) error {
		_, err1 := w.GraphCreate([]int{1, 2, 3, 4}, []int{0, 0, 0, 0}, false)
		_, err2 := w.GraphCreate([]int{2, 1}, []int{0, 1}, false)
		_, err3 := w.GraphCreate([]int{1, 2}, []int{0, 2}, false)
		_, err4 := w.GraphCreate([]int{1}, []int{0, 0}, false)
		_, err5 := w.DistGraphCreateAdjacent([]int{1}, nil, []int{2}, nil, false) // 0 does not send to 1
		_, err6 := w.DistGraphCreateAdjacent(nil, nil, []int{3 * w.Rank()}, nil, false)
		_, err7 := w.DistGraphCreate([]int{w.Rank()}, []int{1 + w.Rank()}, []int{0}, nil, false)
		_, err8 := w.GraphNeighbors(0)
		oneWay, err := w.GraphCreate([]int{1, 1, 1}, []int{1}, false)
		if err != nil {
			return err
		}
		_, err9 := oneWay.GraphNeighbors(3)
		_, _, _, err10 := oneWay.DistGraphNeighborsCount()
		return first(isClass(err1, ErrTopology), isClass(err2, ErrTopology), isClass(err3, ErrTopology), isClass(err4, ErrTopology),
			isClass(err5, ErrTopology), isErr(err6), isErr(err7), isClass(err8, ErrTopology), isClass(err9, ErrRank), isClass(err10, ErrTopology),
			isClass(NeighborAllgather(oneWay, []int{1}, nil), ErrTopology), Barrier(w.Comm))
	})
	if err != nil {
		t.Error(err)
	}
}
