package mpj

import (
	"fmt"
	"slices"
	"testing"
)

// grid makes a grid of 2 x n/2 ranks with periodic rows and columns that are not periodic. In a row
// of two ranks, both neighbours are the same rank.
func grid(w *World) (*Comm, error) {
	return w.CartCreate([]int{min(2, w.Size()), max(1, w.Size()/2)}, []bool{false, true}, false)
}

// TestNeighborAlltoallOnAGridKeepsDirections makes each rank send its neighbours its rank and the
// direction. A message from below must have been sent up.
func TestNeighborAlltoallOnAGridKeepsDirections(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		g, err := grid(w)
		if err != nil || g == nil {
			return err
		}
		var send, recv, wanted []int
		for dim := range 2 {
			below, above, err := g.CartShift(dim, 1)
			if err != nil {
				return err
			}
			send = append(send, 10*g.Rank()+2*dim, 10*g.Rank()+2*dim+1)
			recv = append(recv, -1, -1)
			for i, from := range []int{below, above} {
				if from == ProcNull {
					wanted = append(wanted, -1)
				} else {
					wanted = append(wanted, 10*from+2*dim+1-i)
				}
			}
		}
		return first(NeighborAlltoall(g, send, recv), want("NeighborAlltoall", recv, wanted))
	})
}

func TestNeighborAllgatherMatchesItsDefinition(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		index, edges := star(w.Size())
		g, err := w.GraphCreate(index, edges, false)
		if err != nil {
			return err
		}
		neighbours, err := g.GraphNeighbors(g.Rank())
		if err != nil {
			return err
		}
		var wanted, counts, displs, spread []int
		for _, n := range neighbours {
			wanted = append(wanted, data[int](n, 5)...)
			counts, displs = append(counts, n+1), append(displs, len(spread)+1)
			spread = append(append(spread, 0), data[int](n, n+1)...)
		}
		recv, vector := make([]int, len(wanted)), make([]int, len(spread))
		return first(
			NeighborAllgather(g, data[int](g.Rank(), 5), recv), want("NeighborAllgather", recv, wanted),
			NeighborAllgatherv(g, data[int](g.Rank(), g.Rank()+1), vector, counts, displs), want("NeighborAllgatherv", vector, spread))
	})
}

func TestWrongNeighbourhoodBuffersAreNamed(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		g, err := grid(w)
		if err != nil || g == nil {
			return err
		}
		one, four, five := make([]int, 1), make([]int, 4), make([]int, 5)
		counts := []int{1, 1, 1, 1}
		for i, got := range []error{
			NeighborAllgather(g, one, five), NeighborAlltoall(g, five, four), NeighborAlltoall(g, four, five),
			NeighborAllgather(w.Comm, one, four),
		} {
			if err := isErr(got); err != nil {
				return fmt.Errorf("case %d: %w", i, err)
			}
		}
		return first(
			isClass(NeighborAllgatherv(g, one, four, counts[1:], nil), ErrCount),
			isClass(NeighborAllgatherv(g, one, four, counts, []int{0, 1, 2, 4}), ErrCount),
			isClass(NeighborAlltoallv(g, one, counts, nil, four, counts, nil), ErrCount),
			isClass(NeighborAlltoallv(g, four, counts, nil, four, []int{-1, 1, 1, 1}, nil), ErrCount))
	})
}

// TestNonBlockingNeighbourhoodMatchesBlocking runs more operations at the same time than a
// communicator has slots. It starts them and waits for them in different orders.
func TestNonBlockingNeighbourhoodMatchesBlocking(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		index, edges := star(w.Size())
		g, err := w.GraphCreate(index, edges, false)
		if err != nil {
			return err
		}
		degree, err := g.GraphNeighborsCount(g.Rank())
		if err != nil {
			return err
		}
		counts := slices.Repeat([]int{1}, degree)
		const rounds = 40
		var requests []*Request
		var got, wanted [][]int
		for round := range rounds {
			send := slices.Repeat([]int{100*g.Rank() + round}, degree)
			for kind := range 4 {
				recv := make([]int, degree)
				r, err := startNeighbourhood(g, kind, send, recv, counts, 100*g.Rank()+round)
				if err != nil {
					return err
				}
				requests, got = append(requests, r), append(got, recv)
				var from []int
				for _, n := range edges[index[g.Rank()]-degree : index[g.Rank()]] {
					from = append(from, 100*n+round)
				}
				wanted = append(wanted, from)
			}
		}
		slices.Reverse(requests)
		if _, err := Waitall(requests...); err != nil {
			return err
		}
		for i := range got {
			if err := want(fmt.Sprintf("operation %d", i), got[i], wanted[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func startNeighbourhood(g *Comm, kind int, send, recv, counts []int, mine int) (*Request, error) {
	switch kind {
	case 0:
		return IneighborAllgather(g, []int{mine}, recv)
	case 1:
		return IneighborAllgatherv(g, []int{mine}, recv, counts, nil)
	case 2:
		return IneighborAlltoall(g, send, recv)
	}
	return IneighborAlltoallv(g, send, counts, nil, recv, counts, nil)
}
