package mpitest

import (
	"cmp"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Virtual topologies (MPI 4.0, 8.1 to 8.5).
var topologies = []Test{
	{"dims-create balances", 1, true, dims},
	{"coordinates and ranks of a grid are inverse", 1, true, gridCoords},
	{"shift returns neighbours, or ProcNull beyond the edge", 1, true, gridShift},
	{"a grid is divided into rows and columns", 1, true, gridSub},
	{"a grid smaller than the world leaves ranks out", 2, true, gridLeftOver},
	{"a graph reports the neighbours of every rank", 1, true, ringGraph},
	{"a distributed graph reports the neighbours of this rank", 1, true, ringDistGraph},
	{"dup keeps the topology, split does not", 1, true, topologyKept},
	{"queries of a different topology are errors", 1, true, topologyWrong},
}

func dims(*mpj.World) error {
	for _, c := range []struct {
		nodes    int
		in, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}}, {7, []int{0, 0}, []int{7, 1}}, {6, []int{0, 3, 0}, []int{2, 3, 1}},
		{12, []int{0, 0, 0}, []int{3, 2, 2}}, {1, []int{0}, []int{1}}, {64, []int{0, 0, 0}, []int{4, 4, 4}},
	} {
		got := slices.Clone(c.in)
		if err := cmp.Or(mpj.DimsCreate(c.nodes, got), same("dimensions", got, c.want)); err != nil {
			return err
		}
	}
	return fails("7 ranks in dimensions of 2", mpj.DimsCreate(7, []int{2, 0}), mpj.ErrDims)
}

// grid arranges all ranks in a grid that is periodic in its first dimension.
func grid(w *mpj.World) (g *mpj.Comm, shape []int, err error) {
	shape = make([]int, 2)
	if err := mpj.DimsCreate(w.Size(), shape); err != nil {
		return nil, nil, err
	}
	g, err = w.CartCreate(shape, []bool{true, false}, false)
	return g, shape, err
}

func gridCoords(w *mpj.World) error {
	g, shape, err := grid(w)
	if err != nil {
		return err
	}
	for rank := range g.Size() { // row by row (8.5.1)
		coords, err1 := g.CartCoords(rank)
		back, err2 := g.CartRank(coords)
		want := []int{rank / shape[1], rank % shape[1]}
		if err := cmp.Or(err1, err2, same("coordinates", coords, want), equal("rank", back, rank)); err != nil {
			return err
		}
	}
	got, periods, coords, err := g.CartGet()
	mine, _ := g.CartCoords(g.Rank())
	n, err2 := g.CartdimGet()
	wrapped, err3 := g.CartRank([]int{-1, 0})
	_, outside := g.CartRank([]int{0, shape[1]})
	return cmp.Or(err, err2, err3, same("shape", got, shape), same("periods", periods, []bool{true, false}), same("own coordinates", coords, mine),
		equal("dimensions", n, 2), equal("wrapped", wrapped, (shape[0]-1)*shape[1]), fails("outside", outside, mpj.ErrArg), g.Free())
}

func gridShift(w *mpj.World) error {
	g, shape, err := grid(w)
	if err != nil {
		return err
	}
	row, column := g.Rank()/shape[1], g.Rank()%shape[1]
	at := func(row, column int) int {
		if column < 0 || column >= shape[1] {
			return mpj.ProcNull
		}
		return (row+shape[0])%shape[0]*shape[1] + column
	}
	s1, d1, err1 := g.CartShift(0, 1)
	s2, d2, err2 := g.CartShift(1, 1)
	s3, d3, err3 := g.CartShift(1, -2)
	got, want := []int{s1, d1, s2, d2, s3, d3}, []int{at(row-1, column), at(row+1, column), at(row, column-1), at(row, column+1), at(row, column+2), at(row, column-2)}
	_, _, wrong := g.CartShift(2, 1)
	return cmp.Or(err1, err2, err3, same("neighbours", got, want), fails("a third dimension", wrong, mpj.ErrDims), g.Free())
}

func gridSub(w *mpj.World) error {
	g, shape, err := grid(w)
	if err != nil {
		return err
	}
	row, err1 := g.CartSub([]bool{false, true})
	column, err2 := g.CartSub([]bool{true, false})
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	var inRow, inColumn []int
	for i := range w.Size() {
		if i/shape[1] == g.Rank()/shape[1] {
			inRow = append(inRow, i)
		}
		if i%shape[1] == g.Rank()%shape[1] {
			inColumn = append(inColumn, i)
		}
	}
	_, periods, _, err := column.CartGet()
	return cmp.Or(err, works(w, row, inRow), works(w, column, inColumn), same("periods", periods, []bool{true}), row.Free(), column.Free(), g.Free())
}

func gridLeftOver(w *mpj.World) error {
	n := w.Size() - 1
	g, err := w.CartCreate([]int{n}, []bool{true}, true)
	if err := cmp.Or(err, equal("there", g != nil, w.Rank() < n)); err != nil || g == nil {
		return err
	}
	return cmp.Or(equal("size", g.Size(), n), mpj.Barrier(g), g.Free())
}

// ring returns the arguments of GraphCreate for a ring.
func ring(n int) (index, edges []int) {
	for i := range n {
		edges = append(edges, (i+n-1)%n, (i+1)%n)
		index = append(index, len(edges))
	}
	return index, edges
}

func ringGraph(w *mpj.World) error {
	index, edges := ring(w.Size())
	g, err := w.GraphCreate(index, edges, false)
	if err != nil {
		return err
	}
	for rank := range w.Size() {
		got, err1 := g.GraphNeighbors(rank)
		count, err2 := g.GraphNeighborsCount(rank)
		if err := cmp.Or(err1, err2, equal("count", count, 2), same("neighbours", got, edges[2*rank:2*rank+2])); err != nil {
			return err
		}
	}
	nodes, total, err1 := g.GraphdimsGet()
	i, e, err2 := g.GraphGet()
	return cmp.Or(err1, err2, equal("nodes", nodes, w.Size()), equal("edges", total, len(edges)), same("index", i, index), same("edges", e, edges),
		equal("topology", g.TopoTest(), mpj.GraphTopology), g.Free())
}

func ringDistGraph(w *mpj.World) error {
	g, err1 := w.DistGraphCreateAdjacent([]int{left(w.Comm)}, []int{4}, []int{right(w.Comm)}, []int{4}, false)
	// The same graph, in which the rank before the source specifies each edge.
	from := right(w.Comm)
	h, err2 := w.DistGraphCreate([]int{from}, []int{1}, []int{(from + 1) % w.Size()}, []int{4}, false)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	for _, c := range []*mpj.Comm{g, h} {
		in, out, weighted, err1 := c.DistGraphNeighborsCount()
		sources, weights, dests, _, err2 := c.DistGraphNeighbors()
		err := cmp.Or(err1, err2, same("degrees", []int{in, out}, []int{1, 1}), equal("weighted", weighted, true),
			same("sources", sources, []int{left(w.Comm)}), same("dests", dests, []int{right(w.Comm)}), same("weights", weights, []int{4}),
			equal("topology", c.TopoTest(), mpj.DistGraphTopology), c.Free())
		if err != nil {
			return err
		}
	}
	return nil
}

func topologyKept(w *mpj.World) error {
	g, shape, err := grid(w)
	if err != nil {
		return err
	}
	d, err1 := g.Dup()
	s, err2 := g.Split(0, 0)
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	got, _, _, err := d.CartGet()
	return cmp.Or(err, same("shape", got, shape), equal("topology", s.TopoTest(), mpj.NoTopology), equal("topology", w.TopoTest(), mpj.NoTopology),
		d.Free(), s.Free(), g.Free())
}

func topologyWrong(w *mpj.World) error {
	_, err1 := w.CartCoords(0)
	_, err2 := w.GraphNeighbors(0)
	_, err3 := w.CartCreate([]int{w.Size() + 1}, []bool{false}, false)
	_, err4 := w.CartCreate([]int{1, 1}, []bool{false}, false)
	err5 := mpj.NeighborAllgather(w.Comm, []int{1}, []int{1})
	return cmp.Or(fails("CartCoords", err1, mpj.ErrTopology), fails("GraphNeighbors", err2, mpj.ErrTopology), fails("too large", err3, mpj.ErrDims),
		fails("uneven lists", err4, mpj.ErrDims), fails("NeighborAllgather", err5, mpj.ErrTopology))
}
