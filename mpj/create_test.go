package mpj

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// works checks that c has these world ranks, in order, and that a collective and messages around a
// ring work on c.
func works(c *Comm, members ...int) error {
	sum, n := make([]int, 1), c.Size()
	buf := make([]int, 1)
	right, left := (c.Rank()+1)%n, (c.Rank()-1+n)%n
	s, err := Sendrecv(c, []int{c.Rank()}, right, 3, buf, AnySource, 3)
	return first(err,
		want("members", c.Group().members, members),
		want("source and content", []int{s.Source, buf[0]}, []int{left, left}),
		Allreduce(c, []int{c.world.Rank()}, sum, Sum),
		want("sum of world ranks", sum, []int{total(members)}))
}

func total(s []int) (sum int) {
	for _, v := range s {
		sum += v
	}
	return sum
}

// numbers returns from, from+step, ... below n.
func numbers(from, step, n int) []int {
	var s []int
	for i := from; i < n; i += step {
		s = append(s, i)
	}
	return s
}

func reversed(s []int) []int {
	r := make([]int, len(s))
	for i, v := range s {
		r[len(s)-1-i] = v
	}
	return r
}

func TestDupSeparatesMessages(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		d, err := w.Dup()
		if err != nil {
			return err
		}
		if got := d.Compare(w.Comm); got != Congruent {
			return fmt.Errorf("Compare returns %v for a duplicate", got)
		}
		mine, theirs := make([]int, 1), make([]int, 1)
		err = first(
			Send(w.Comm, []int{1}, w.Rank(), 0), Send(d, []int{2}, w.Rank(), 0),
			second(Recv(d, theirs, AnySource, 0)), second(Recv(w.Comm, mine, AnySource, 0)))
		return first(err, want("messages", []int{mine[0], theirs[0]}, []int{1, 2}), works(d, numbers(0, 1, w.Size())...))
	})
}

func second(_ Status, err error) error { return err }

func TestSelfIsThisRankAlone(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		d, err := w.Self().Dup() // without the other ranks
		if err != nil {
			return err
		}
		return first(works(w.Self(), w.Rank()), works(d, w.Rank()), isClass(w.Self().Free(), ErrComm), d.Free(), works(w.Comm, numbers(0, 1, w.Size())...))
	})
}

func TestSplitIsByColorAndKey(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := w.Size()
		odd, err1 := w.Split(w.Rank()%2, -w.Rank())
		same, err2 := w.Split(7, 0)
		some, err3 := w.Split(map[bool]int{true: 1, false: Undefined}[w.Rank() > 0], 0)
		if err := first(err1, err2, err3); err != nil {
			return err
		}
		if (some != nil) != (w.Rank() > 0) {
			return fmt.Errorf("Split with color Undefined returned %v", some)
		}
		if some != nil {
			if err := works(some, numbers(1, 1, n)...); err != nil {
				return err
			}
		}
		return first(works(odd, reversed(numbers(w.Rank()%2, 2, n))...), works(same, numbers(0, 1, n)...))
	})
}

func TestCreateUsesAGroup(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		members := reversed(numbers(0, 2, w.Size()))
		even, err := w.Group().Incl(members)
		if err != nil {
			return err
		}
		c, err := w.Create(even)
		if err != nil || c == nil {
			return first(err, want("outside", []bool{c == nil}, []bool{w.Rank()%2 == 1}))
		}
		none, err := c.Create(GroupEmpty)
		return first(err, works(c, members...), want("a nil communicator", []bool{none == nil}, []bool{true}))
	})
}

// TestCreateOfSeveralGroups creates communicators of disjoint groups in one call.
func TestCreateOfSeveralGroups(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		members := numbers(w.Rank()%2, 2, w.Size())
		g, err := w.Group().Incl(members)
		if err != nil {
			return err
		}
		c, err := w.Create(g)
		if err != nil {
			return err
		}
		return works(c, members...)
	})
}

// TestSplitDownToOne checks that communicators that are made from communicators, some of which are
// freed, never mix messages.
func TestSplitDownToOne(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		c := w.Comm
		for c.Size() > 1 {
			half, err := c.Split(c.Rank()*2/c.Size(), 0)
			if err != nil {
				return err
			}
			if err := works(half, half.Group().members...); err != nil {
				return err
			}
			if c != w.Comm {
				if err := c.Free(); err != nil {
					return err
				}
			}
			c = half
		}
		return Barrier(w.Comm)
	})
}

// TestSplitTypeFollowsPlaces checks that SplitType uses the places recorded in the world.
func TestSplitTypeFollowsPlaces(t *testing.T) {
	err := RunLocal(context.Background(), 6, func(w *World) error {
		places := []core.Place{{}, {Machine: 1}, {}, {Machine: 2, Cluster: 1}, {Machine: 1}, {Machine: 2, Cluster: 1}}
		core.SetPlaces(&w.base, places)
		machine, err1 := w.SplitType(SplitMachine, 0)
		cluster, err2 := w.SplitType(SplitCluster, 0)
		if err := first(err1, err2); err != nil {
			return err
		}
		_, err3 := w.SplitType(9, 0)
		return first(
			works(machine, [][]int{{0, 2}, {1, 4}, {0, 2}, {3, 5}, {1, 4}, {3, 5}}[w.Rank()]...),
			works(cluster, [][]int{{0, 1, 2, 4}, {3, 5}}[places[w.Rank()].Cluster]...),
			isClass(err3, ErrArg))
	})
	if err != nil {
		t.Error(err)
	}
}

func isClass(err error, class Class) error {
	if errors.Is(err, class) {
		return nil
	}
	return errors.Join(fmt.Errorf("want %q, got another error or none", class.Error()), err)
}

// TestConcurrentCreation makes goroutines create communicators from different parents at the same
// time, started in a different order at each rank.
func TestConcurrentCreation(t *testing.T) {
	err := RunLocal(context.Background(), 4, func(w *World) error {
		const parallel, rounds = 4, 25
		parents := make([]*Comm, parallel)
		for i := range parents {
			var err error
			if parents[i], err = w.Dup(); err != nil {
				return err
			}
		}
		var all sync.WaitGroup
		errs := make([]error, parallel)
		for k := range parallel {
			i := (k*(w.Rank()+1) + w.Rank()) % parallel
			if w.Rank() == 1 || w.Rank() == 3 { // factors 2 and 4 do not give a permutation
				i = (k + w.Rank()) % parallel
			}
			all.Go(func() {
				for round := range rounds {
					c, err := parents[i].Split(w.Rank()%2, round)
					if err == nil {
						sum := make([]int, 1)
						err = first(Allreduce(c, []int{1}, sum, Sum), want("sum", sum, []int{2}), c.Free())
					}
					if err != nil {
						errs[i] = err
						return
					}
				}
			})
		}
		all.Wait()
		return first(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWrongCreationsAreErrors(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(w *World) error {
		_, err1 := w.Split(-5*w.Rank(), 0)
		if err := isClass(err1, ErrArg); err != nil || !strings.Contains(err1.Error(), "rank 1 passes color -5") {
			return fmt.Errorf("negative color: %w", err1)
		}
		c, err := w.Split(w.Rank()%2, 0)
		if err != nil {
			return err
		}
		_, err2 := c.Create(w.Group())
		g, err := w.Group().Incl([]int{0, 1, 2}[w.Rank():])
		if err != nil {
			return err
		}
		_, err3 := w.Create(g)
		if w.Rank() < 2 { // the group of rank 2 contains only itself and is valid
			err3 = isClass(err3, ErrGroup)
		}
		return first(isClass(err2, ErrGroup), err3, isClass(w.Free(), ErrComm), Barrier(w.Comm))
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFreedAndNilCommunicatorsAreRefused checks that every call on a freed or nil communicator
// fails, with an error that names the freed communicator.
func TestFreedAndNilCommunicatorsAreRefused(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		freed, err := w.Dup()
		if err != nil {
			return err
		}
		freed.SetName("spare")
		r, err := Irecv(freed, make([]int, 1), 1-w.Rank(), 0)
		if err := first(err, Send(freed, []int{1}, 1-w.Rank(), 0), freed.Free()); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			t.Errorf("a receive that was posted before Free: %v", err)
		}
		for _, c := range []*Comm{freed, nil} {
			for op, err := range onComm(c) {
				if !errors.Is(err, ErrComm) || !strings.Contains(err.Error(), op) {
					t.Errorf("%s on a freed or nil communicator returned %v", op, err)
				}
				if c != nil && !strings.Contains(err.Error(), `"spare" was freed`) {
					t.Errorf("%s: %v does not name the communicator", op, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func onComm(c *Comm) map[string]error {
	one := make([]int, 1)
	_, recv := Recv(c, one, 0, 0)
	_, dup := c.Dup()
	_, split := c.Split(0, 0)
	_, create := c.Create(GroupEmpty)
	_, inter := c.IntercommCreate(0, c, 0, 0)
	_, merge := c.Merge(true)
	return map[string]error{
		"Send": Send(c, one, 0, 0), "Recv": recv, "Barrier": Barrier(c), "Bcast": Bcast(c, one, 0),
		"Allreduce": Allreduce(c, one, one, Sum), "Dup": dup, "Split": split, "Create": create,
		"IntercommCreate": inter, "Merge": merge, "Free": c.Free(),
	}
}

// TestR4IdsAreDecidedOnce makes two goroutines create communicators while the processes that choose
// their ids fail. The surviving replicas must have the same ids.
func TestR4IdsAreDecidedOnce(t *testing.T) {
	kills(t, 2, func(tr *trial, w *World) error {
		other, err := w.Dup()
		if err != nil {
			return err
		}
		const rounds = 6
		ids := make([][]uint32, 2)
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i, parent := range []*Comm{w.Comm, other} {
			both.Go(func() {
				for k := range rounds {
					c, err := parent.Split(0, k)
					if err != nil {
						errs[i] = err
						return
					}
					ids[i] = append(ids[i], c.base.ID())
				}
			})
		}
		both.Wait()
		if err := first(errs...); err != nil {
			return err
		}
		for k := range rounds {
			tr.see(w, "%d and %d", ids[0][k], ids[1][k])
		}
		return nil
	})
}

func TestR2CommunicatorsSurviveKills(t *testing.T) {
	kills(t, 2, func(tr *trial, w *World) error {
		for round := range 10 {
			c, err := w.Split(round%3, -w.Rank())
			if err != nil {
				return err
			}
			g, err := c.CartCreate([]int{3}, []bool{true}, false)
			if err != nil {
				return err
			}
			recv := make([]int, 2)
			if err := NeighborAllgather(g, []int{100*round + w.Rank()}, recv); err != nil {
				return err
			}
			tr.see(w, "%v", recv)
			if err := first(g.Free(), c.Free()); err != nil {
				return err
			}
			tr.see(w, "freed")
		}
		return nil
	})
}

// TestFreedCommunicatorsKeepOnlyTheirID checks that no state of freed communicators except their ids
// is kept, so that a program may create and free communicators without limit.
func TestFreedCommunicatorsKeepOnlyTheirID(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(w *World) error {
		const rounds = 200
		before := w.base.Process().IDs()
		for range rounds {
			d, err := w.Dup()
			if err != nil {
				return err
			}
			if err := first(works(d, 0, 1), d.Free()); err != nil {
				return err
			}
		}
		for _, c := range w.base.Process().Comms() {
			if c != w.core() && c != w.Self().core() {
				return fmt.Errorf("communicator %d is still stored", c.ID())
			}
		}
		return want("ids", []int{w.base.Process().IDs()}, []int{before + rounds})
	})
	if err != nil {
		t.Error(err)
	}
}
