package mpj

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// halves splits the world into its even and odd ranks and connects them with an intercommunicator.
// In a world of one rank, it returns nil.
func halves(w *World) (half, inter *Comm, err error) {
	if w.Size() < 2 {
		return nil, nil, nil
	}
	half, err = w.Split(w.Rank()%2, 0)
	if err != nil {
		return nil, nil, err
	}
	leader := half.Size() - 1
	remote := [][]int{numbers(0, 2, w.Size()), numbers(1, 2, w.Size())}[1-w.Rank()%2]
	inter, err = half.IntercommCreate(leader, w.Comm, remote[len(remote)-1], 5)
	return half, inter, err
}

// acrossWorks checks x by messages from every rank to every rank of the other group.
func acrossWorks(x *Comm, remote []int) error {
	for r := range x.RemoteSize() {
		if err := Send(x, []int{10*x.Rank() + r}, r, 1); err != nil {
			return err
		}
	}
	buf := make([]int, 1)
	for r := range x.RemoteSize() {
		if _, err := Recv(x, buf, r, 1); err != nil {
			return err
		}
		if err := want("message", buf, []int{10*r + x.Rank()}); err != nil {
			return err
		}
	}
	if x.Rank() == 0 { // to all, received with AnySource
		for r := range x.RemoteSize() {
			if err := Send(x, []int{0}, r, 2); err != nil {
				return err
			}
		}
	}
	s, err := Recv(x, buf, AnySource, 2)
	return first(err, want("source", []int{s.Source}, []int{0}), want("remote group", x.RemoteGroup().members, remote))
}

func TestIntercommunicatorJoinsTwoGroups(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		half, x, err := halves(w)
		if err != nil || x == nil {
			return err
		}
		if !x.TestInter() || half.TestInter() || half.RemoteSize() != 0 || half.RemoteGroup().Size() != 0 {
			return fmt.Errorf("TestInter %v and %v", x.TestInter(), half.TestInter())
		}
		remote := numbers(1-w.Rank()%2, 2, w.Size())
		d, err := x.Dup()
		if err != nil {
			return err
		}
		return first(
			want("local group", x.Group().members, half.Group().members),
			acrossWorks(x, remote), acrossWorks(d, remote),
			want("comparisons", []Comparison{x.Compare(d), x.Compare(x), x.Compare(half)}, []Comparison{Congruent, Identical, Unequal}),
			isClass(Barrier(x), ErrComm), isClass(Send(x, []int{1}, len(remote), 0), ErrRank))
	})
}

func TestMergeOrdersTheGroups(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		_, x, err := halves(w)
		if err != nil || x == nil {
			return err
		}
		even, odd := numbers(0, 2, w.Size()), numbers(1, 2, w.Size())
		for _, c := range []struct {
			high [2]bool // of the even ranks, of the odd ranks
			want []int
		}{
			{[2]bool{false, true}, slices.Concat(even, odd)},
			{[2]bool{true, false}, slices.Concat(odd, even)},
			{[2]bool{true, true}, slices.Concat(even, odd)},
			{[2]bool{false, false}, slices.Concat(even, odd)},
		} {
			merged, err := x.Merge(c.high[w.Rank()%2])
			if err != nil {
				return err
			}
			if err := works(merged, c.want...); err != nil {
				return fmt.Errorf("high %v: %w", c.high, err)
			}
		}
		return nil
	})
}

func TestWrongIntercommunicatorsAreErrorsAtAllRanks(t *testing.T) {
	err := RunLocal(context.Background(), 4, func(w *World) error {
		half, x, err := halves(w)
		if err != nil {
			return err
		}
		_, overlap := half.IntercommCreate(0, w.Comm, w.Rank()%2, 0) // its own leader
		_, nobody := half.IntercommCreate(9, w.Comm, 0, 0)
		_, high := x.Merge(w.Rank() == 0)
		_, plain := half.Merge(true)
		return first(isErr(overlap), isClass(nobody, ErrRank), isClass(high, ErrArg), isClass(plain, ErrComm), Barrier(w.Comm))
	})
	if err != nil {
		t.Error(err)
	}
}

func isErr(err error) error {
	if err == nil {
		return fmt.Errorf("got no error, want one")
	}
	return nil
}
