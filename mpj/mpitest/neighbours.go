package mpitest

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Neighbourhood collectives (MPI 4.0, 8.6 and 8.7).
var neighbours = []Test{
	{"neighbours in a grid exchange, also with themselves", 1, true, gridExchange},
	{"beyond the edge no data is sent or changed", 1, true, gridEdge},
	{"neighbours in a graph exchange blocks of different lengths", 1, true, starExchange},
	{"neighbourhood collectives have nonblocking forms", 1, true, neighboursStarted},
}

// gridExchange arranges all ranks in a ring. With one rank, both neighbours are that rank itself;
// with two ranks, both neighbours are the other rank.
func gridExchange(w *mpj.World) error {
	g, err := w.CartCreate([]int{w.Size()}, []bool{true}, false)
	if err != nil {
		return err
	}
	for _, count := range []int{0, 1, 20000} {
		everywhere, swapped := make([]int, 2*count), make([]int, 2*count)
		err := cmp.Or(mpj.NeighborAllgather(g, numbers[int](w.Rank(), count), everywhere),
			mpj.NeighborAlltoall(g, numbers[int](w.Rank(), 2*count), swapped))
		below, above := numbers[int](left(g), 2*count), numbers[int](right(g), 2*count)
		err = cmp.Or(err, same("from below", everywhere[:count], below[:count]), same("from above", everywhere[count:], above[:count]),
			same("for this rank, from below", swapped[:count], below[count:]), same("for this rank, from above", swapped[count:], above[:count]))
		if err != nil {
			return fmt.Errorf("%d elements: %w", count, err)
		}
	}
	return g.Free()
}

func gridEdge(w *mpj.World) error {
	g, err := w.CartCreate([]int{w.Size()}, []bool{false}, false)
	if err != nil {
		return err
	}
	got, want := []int{-1, -1}, []int{-1, -1}
	if w.Rank() > 0 {
		want[0] = w.Rank() - 1
	}
	if w.Rank() < w.Size()-1 {
		want[1] = w.Rank() + 1
	}
	return cmp.Or(mpj.NeighborAllgather(g, []int{w.Rank()}, got), same("received", got, want), g.Free())
}

// starExchange connects rank 0 with all other ranks. Rank i sends i elements to rank 0 and receives
// i elements.
func starExchange(w *mpj.World) error {
	n := w.Size()
	var others, counts []int
	length := 0
	if w.Rank() == 0 {
		for i := 1; i < n; i++ {
			others, counts = append(others, i), append(counts, i)
			length += i
		}
	} else {
		others, counts, length = []int{0}, []int{w.Rank()}, w.Rank()
	}
	g, err := w.DistGraphCreateAdjacent(others, nil, others, nil, false)
	if err != nil {
		return err
	}
	sent, got, want, collected := make([]int, length), make([]int, length), make([]int, length), make([]int, length)
	at := 0
	for e, other := range others {
		for range counts[e] {
			sent[at], want[at] = 100*w.Rank()+other, 100*other+w.Rank()
			at++
		}
	}
	err = cmp.Or(mpj.NeighborAlltoallv(g, sent, counts, nil, got, counts, nil), same("NeighborAlltoallv", got, want))
	if w.Rank() == 0 { // gathers from all ranks, and sends no data
		return cmp.Or(err, mpj.NeighborAllgatherv(g, nil, collected, counts, nil), same("NeighborAllgatherv", collected, want), g.Free())
	}
	return cmp.Or(err, mpj.NeighborAllgatherv(g, sent, nil, []int{0}, nil), g.Free())
}

func neighboursStarted(w *mpj.World) error {
	g, err := w.CartCreate([]int{w.Size()}, []bool{true}, false)
	if err != nil {
		return err
	}
	me, both, ones := []int{w.Rank()}, []int{w.Rank(), 100 + w.Rank()}, []int{1, 1}
	a, b, c, d := make([]int, 2), make([]int, 2), make([]int, 2), make([]int, 2)
	r1, err1 := mpj.IneighborAllgather(g, me, a)
	r2, err2 := mpj.IneighborAllgatherv(g, me, b, ones, []int{1, 0})
	r3, err3 := mpj.IneighborAlltoall(g, both, c)
	r4, err4 := mpj.IneighborAlltoallv(g, both, ones, nil, d, ones, []int{1, 0})
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return err
	}
	_, err = mpj.Waitall(r4, r3, r2, r1)
	below, above := left(g), right(g)
	return cmp.Or(err, same("allgather", a, []int{below, above}), same("allgatherv", b, []int{above, below}),
		same("alltoall", c, []int{100 + below, above}), same("alltoallv", d, []int{above, 100 + below}), g.Free())
}
