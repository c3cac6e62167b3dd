package mpitest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Communicators (MPI 4.0, 7.4).
var comms = []Test{
	{"a duplicate is congruent and separates messages", 1, true, duplicate},
	{"idup takes no time from the program", 1, true, idup},
	{"idup copies attributes and the error handler", 1, true, idupInherits},
	{"split groups by color and orders by key", 1, true, split},
	{"split with an undefined color returns no communicator", 1, true, splitUndefined},
	{"split by machine groups the ranks that share memory", 1, true, splitMachine},
	{"split by machine leaves out ranks with an undefined kind", 1, true, splitTypeUndefined},
	{"create takes a group", 1, true, create},
	{"create-group involves only the members of the group", 2, true, createGroup},
	{"create-group makes a new communicator at every call", 1, true, createGroupAgain},
	{"create-group of overlapping groups at the same time needs different tags", 3, false, createGroupsAtOnce},
	{"communicators of communicators work", 4, true, descendants},
	{"many communicators are created and freed", 1, true, manyComms},
	{"communicators compare", 2, true, compare},
	{"names are kept, and appear in errors", 1, true, named},
	{"error handlers are called with errors, and are inherited", 1, true, errhandler},
}

// works checks that c is a working communicator of these ranks of w, in order.
func works(w *mpj.World, c *mpj.Comm, ranks []int) error {
	sum, want := make([]int, 1), 0
	for _, r := range ranks {
		want += r
	}
	got := make([]int, 1)
	s, err := mpj.Sendrecv(c, []int{w.Rank()}, right(c), 0, got, left(c), 0)
	return cmp.Or(err, equal("size", c.Size(), len(ranks)), equal("rank", ranks[c.Rank()], w.Rank()),
		same("group", ranksOf(w, c.Group()), ranks), equal("source", s.Source, left(c)), equal("message", got[0], ranks[left(c)]),
		mpj.Allreduce(c, []int{w.Rank()}, sum, mpj.Sum), equal("sum", sum[0], want))
}

func duplicate(w *mpj.World) error {
	d, err := w.Dup()
	if err != nil {
		return err
	}
	in, out := make([]int, 1), make([]int, 1)
	r1, err1 := mpj.Irecv(d, in, mpj.AnySource, mpj.AnyTag)
	r2, err2 := mpj.Irecv(w.Comm, out, mpj.AnySource, mpj.AnyTag)
	err = cmp.Or(err1, err2, mpj.Send(w.Comm, []int{1}, right(d), 0), mpj.Send(d, []int{2}, right(d), 0))
	if err != nil {
		return err
	}
	_, err = mpj.Waitall(r1, r2)
	return cmp.Or(err, same("messages", []int{out[0], in[0]}, []int{1, 2}), equal("compare", w.Compare(d), mpj.Congruent),
		works(w, d, numbers[int](0, w.Size())), d.Free())
}

// idup starts several duplications before it waits for one, and mixes them with other collectives and
// with Dup.
func idup(w *mpj.World) error {
	var copies []*mpj.Comm
	var requests []*mpj.Request
	for range several {
		d, r, err := w.Idup()
		if err != nil {
			return err
		}
		copies, requests = append(copies, d), append(requests, r)
	}
	sum := make([]int, 1)
	if err := cmp.Or(mpj.Allreduce(w.Comm, []int{1}, sum, mpj.Sum), equal("sum", sum[0], w.Size())); err != nil {
		return err
	}
	last, err := w.Dup()
	if err != nil {
		return err
	}
	statuses, err := mpj.Waitall(requests...)
	err = cmp.Or(err, equal("status", statuses[0], mpj.Status{Source: mpj.AnySource, Tag: mpj.AnyTag}))
	for _, d := range append(copies, last) {
		err = cmp.Or(err, equal("compare", w.Compare(d), mpj.Congruent), works(w, d, numbers[int](0, w.Size())), d.Free())
	}
	return err
}

func idupInherits(w *mpj.World) error {
	counted, handled := mpj.KeyvalCreate(func(_ *mpj.Comm, v int) (int, bool) { return v + 1, true }, nil), errors.New("handled")
	c, err := w.Dup()
	if err := cmp.Or(err, mpj.AttrPut(c, counted, 1)); err != nil {
		return err
	}
	c.SetErrhandler(func(*mpj.Comm, *mpj.Error) error { return handled })
	d, r, err := c.Idup()
	if err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	n, _ := mpj.AttrGet(d, counted)
	failed := mpj.Send(d, []int{1}, -9, 0)
	return cmp.Or(equal("attribute", n, 2), equal("handled", errors.Is(failed, handled), true), d.Free(), c.Free())
}

// createGroup makes a communicator of the odd ranks in descending order.
func createGroup(w *mpj.World) error {
	var odd []int
	for i := w.Size() - 1; i >= 0; i-- {
		if i%2 == 1 {
			odd = append(odd, i)
		}
	}
	if w.Rank()%2 == 0 {
		c, err := w.CreateGroup(mpj.GroupEmpty, 3)
		return cmp.Or(err, equal("there", c != nil, false))
	}
	g, err := w.Group().Incl(odd)
	if err != nil {
		return err
	}
	c, err := w.CreateGroup(g, 3)
	if err != nil {
		return err
	}
	_, err1 := c.CreateGroup(w.Group(), 0)
	_, err2 := c.CreateGroup(g, -1)
	return cmp.Or(works(w, c, odd), fails("a group with other ranks", err1, mpj.ErrGroup), fails("a negative tag", err2, mpj.ErrTag), c.Free())
}

func createGroupAgain(w *mpj.World) error {
	var made []*mpj.Comm
	for i := range several {
		c, err := w.CreateGroup(w.Group(), i/2)
		if err != nil {
			return err
		}
		made = append(made, c)
	}
	var err error
	for i, c := range made {
		to, got := made[(i+1)%several], make([]int, 1)
		r, err1 := mpj.Irecv(c, got, left(c), 0)
		err = cmp.Or(err, err1, mpj.Send(to, []int{1}, right(to), 1), mpj.Send(c, []int{i}, right(c), 0))
		if err != nil {
			return err
		}
		_, err2 := r.Wait()
		_, err3 := mpj.Recv(to, make([]int, 1), left(to), 1)
		err = cmp.Or(err2, err3, equal("message", got[0], i))
	}
	for _, c := range made {
		err = cmp.Or(err, works(w, c, numbers[int](0, w.Size())), c.Free())
	}
	return err
}

// createGroupsAtOnce pairs each rank with both of its neighbours in the ring. Pairs that were made one
// after the other would wait for each other in a circle.
func createGroupsAtOnce(w *mpj.World) error {
	type outcome struct {
		c   *mpj.Comm
		err error
	}
	pair := func(first int) chan outcome {
		done := make(chan outcome, 1)
		ranks := []int{first, (first + 1) % w.Size()}
		go func() {
			g, err := w.Group().Incl(ranks)
			if err != nil {
				done <- outcome{nil, err}
				return
			}
			c, err := w.CreateGroup(g, first)
			if err == nil {
				err = works(w, c, ranks)
			}
			done <- outcome{c, err}
		}()
		return done
	}
	before, after := pair(left(w.Comm)), pair(w.Rank())
	one, other := <-before, <-after
	return cmp.Or(one.err, other.err, one.c.Free(), other.c.Free())
}

// split makes three communicators, in which the ranks are in descending order.
func split(w *mpj.World) error {
	color := w.Rank() % 3
	c, err := w.Split(color, -w.Rank())
	if err != nil {
		return err
	}
	var ranks []int
	for i := w.Size() - 1; i >= 0; i-- {
		if i%3 == color {
			ranks = append(ranks, i)
		}
	}
	same, err := w.Split(5, 1) // equal keys preserve the order
	return cmp.Or(err, works(w, c, ranks), works(w, same, numbers[int](0, w.Size())), c.Free(), same.Free())
}

func splitUndefined(w *mpj.World) error {
	color := 4
	if w.Rank() > 0 {
		color = mpj.Undefined
	}
	c, err := w.Split(color, 0)
	if err := cmp.Or(err, equal("there", c != nil, w.Rank() == 0)); err != nil {
		return err
	}
	if c == nil {
		return fails("Barrier on no communicator", mpj.Barrier(c), mpj.ErrComm)
	}
	return cmp.Or(works(w, c, []int{0}), c.Free())
}

// splitMachine cannot determine which ranks share a machine. It checks only that the ranks agree.
func splitMachine(w *mpj.World) error {
	c, err := w.SplitType(mpj.SplitMachine, 0)
	if err != nil {
		return err
	}
	d, err := w.SplitType(mpj.SplitCluster, 0)
	if err != nil {
		return err
	}
	return cmp.Or(works(w, c, ranksOf(w, c.Group())), equal("ranks of the machine outside its cluster", c.Group().Difference(d.Group()).Size(), 0), c.Free(), d.Free())
}

func splitTypeUndefined(w *mpj.World) error {
	kind := mpj.SplitMachine
	if w.Rank() == 0 {
		kind = mpj.SplitUndefined
	}
	c, err := w.SplitType(kind, 0)
	if err := cmp.Or(err, equal("there", c != nil, w.Rank() > 0)); err != nil || c == nil {
		return err
	}
	return cmp.Or(works(w, c, ranksOf(w, c.Group())), equal("rank 0", slices.Contains(ranksOf(w, c.Group()), 0), false), c.Free())
}

func create(w *mpj.World) error {
	odd, err := w.Group().RangeExcl([]mpj.Range{{First: 0, Last: w.Size() - 1, Stride: 2}})
	if err != nil {
		return err
	}
	c, err := w.Create(odd)
	if err := cmp.Or(err, equal("there", c != nil, w.Rank()%2 == 1)); err != nil || c == nil {
		return err
	}
	return cmp.Or(works(w, c, ranksOf(w, odd)), c.Free())
}

// descendants splits communicators in halves down to single ranks.
func descendants(w *mpj.World) error {
	c := w.Comm
	for c.Size() > 1 {
		half, err := c.Split(2*c.Rank()/c.Size(), 0)
		if err != nil {
			return err
		}
		if err := works(w, half, ranksOf(w, half.Group())); err != nil {
			return fmt.Errorf("%d of %d ranks: %w", half.Size(), c.Size(), err)
		}
		if c != w.Comm {
			if err := c.Free(); err != nil {
				return err
			}
		}
		c = half
	}
	return c.Free()
}

func manyComms(w *mpj.World) error {
	for i := range 60 {
		c, err := w.Dup()
		if err != nil {
			return err
		}
		sum := make([]int, 1)
		err = cmp.Or(mpj.Allreduce(c, []int{i}, sum, mpj.Sum), equal("sum", sum[0], i*w.Size()), c.Free())
		if err := cmp.Or(err, fails("Free again", c.Free(), mpj.ErrComm)); err != nil {
			return err
		}
	}
	return nil
}

func compare(w *mpj.World) error {
	d, err1 := w.Dup()
	backwards, err2 := w.Split(0, -w.Rank())
	part, err3 := w.Split(w.Rank()%2, 0)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	got := []mpj.Comparison{w.Compare(w.Comm), w.Compare(d), w.Compare(backwards), w.Compare(part)}
	return cmp.Or(same("comparisons", got, []mpj.Comparison{mpj.Identical, mpj.Congruent, mpj.Similar, mpj.Unequal}),
		d.Free(), backwards.Free(), part.Free())
}

func named(w *mpj.World) error {
	d, err := w.Dup()
	if err != nil {
		return err
	}
	d.SetName("library")
	return cmp.Or(equal("world", w.Name(), "world"), equal("name", d.Name(), "library"), d.Free(),
		fails("freed", mpj.Barrier(d), mpj.ErrComm))
}

func errhandler(w *mpj.World) error {
	seen, other := 0, errors.New("handled")
	d, err := w.Dup()
	if err != nil {
		return err
	}
	d.SetErrhandler(func(_ *mpj.Comm, err *mpj.Error) error {
		seen++
		return errors.Join(other, err)
	})
	child, err := d.Dup()
	if err != nil {
		return err
	}
	err1, err2 := mpj.Send(d, []int{1}, -9, 0), mpj.Send(child, []int{1}, -9, 0)
	err3 := mpj.Send(w.Comm, []int{1}, -9, 0)
	return cmp.Or(equal("calls", seen, 2), equal("returned error", errors.Is(err1, other) && errors.Is(err2, other), true),
		equal("error on another communicator", errors.Is(err3, other), false), fails("class", err1, mpj.ErrRank), child.Free(), d.Free())
}
