package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// inWorld runs program as each of n ranks of a job within this process.
func inWorld(t *testing.T, n int, program func(world *Comm) error) {
	t.Helper()
	job := localworld.New(t.Context(), localworld.Config{Ranks: n, Replicas: 1})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		world := new(Comm)
		NewWorld(world, e, p.Rank, n, true)
		if err := errors.Join(program(world), e.Flush()); err != nil {
			return err
		}
		job.Finish(p)
		e.Close()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// unexpected returns an error for the unexpected outcome err of a call, which may be nil.
func unexpected(err error, format string, args ...any) error {
	return errors.Join(fmt.Errorf(format, args...), err)
}

// ring checks that c has these world ranks, and that messages reach the next rank of c.
func ring(c *Comm, members ...int) error {
	if got := c.Group().Members; !slices.Equal(got, members) {
		return fmt.Errorf("got members %v, want %v", got, members)
	}
	left, b := (c.Rank()+c.Size()-1)%c.Size(), make([]byte, 1)
	s, err := Sendrecv(c, []byte{byte(c.Rank())}, (c.Rank()+1)%c.Size(), 0, b, left, 0)
	if err == nil && (int(b[0]) != left || s.Source != left) {
		err = fmt.Errorf("got a message of %d with status %+v, want one of %d", b[0], s, left)
	}
	return err
}

// TestUsedCommunicatorIDsAreSkipped checks that a creation finds an id that no process uses, even if
// each process uses many different ids.
func TestUsedCommunicatorIDsAreSkipped(t *testing.T) {
	inWorld(t, 3, func(world *Comm) error {
		for k := range 10 {
			if k%3 == world.Rank() {
				world.process.ids.take(world.lineage.next(1).candidate(k))
			}
		}
		d := new(Comm)
		if err := Dup(world, d, nil, nil); err != nil {
			return err
		}
		if want := world.lineage.next(1).candidate(10); d.ID() != want {
			return fmt.Errorf("got id %d, want %d", d.ID(), want)
		}
		return ring(d, 0, 1, 2)
	})
}

// TestCommunicatorsAreCreated checks the members of each kind of communicator, in order.
func TestCommunicatorsAreCreated(t *testing.T) {
	inWorld(t, 4, func(world *Comm) error {
		self, half, some, inter, local, both := new(Comm), new(Comm), new(Comm), new(Comm), new(Comm), new(Comm)
		NewSelf(world, self)
		odd := world.Rank() % 2
		inHalf, err := Split(world, half, odd, -world.Rank())
		if err != nil || !inHalf {
			return unexpected(err, "Split: %t", inHalf)
		}
		member, err := Create(world, some, Group{Members: []int{3, 0}, Self: world.Rank()})
		if err != nil || member != (world.Rank()%3 == 0) {
			return unexpected(err, "Create: %t", member)
		}
		if err := IntercommCreate(half, inter, local, 0, world, 3-odd, 7); err != nil {
			return err
		}
		if err := Merge(inter, both, odd == 0); err != nil {
			return err
		}
		if got := inter.NamedGroup().Members; !slices.Equal(got, []int{3 - odd, 1 - odd}) {
			return fmt.Errorf("the remote group is %v", got)
		}
		err = errors.Join(ring(self, world.Rank()), ring(half, 2+odd, odd), ring(local, 2+odd, odd), ring(both, 3, 1, 2, 0))
		if member {
			err = errors.Join(err, ring(some, 3, 0))
		}
		return err
	})
}

// TestIdupIsRefusedUntilItIsComplete checks that a duplicate cannot be used before the other rank has
// called Idup, and that it has its ranks.
func TestIdupIsRefusedUntilItIsComplete(t *testing.T) {
	inWorld(t, 2, func(world *Comm) error {
		d := new(Comm)
		if world.Rank() == 1 { // rank 0 allows the other Idup
			if _, err := Recv(world, nil, 0, 0); err != nil {
				return err
			}
		}
		r, err := Idup(world, d, nil, nil, "Idup")
		if err != nil {
			return err
		}
		if world.Rank() == 0 {
			early := Send(d, engineapi.Standard, nil, 1, 0)
			if !errors.Is(early, ErrComm) || !strings.Contains(early.Error(), "wait for its request") {
				return unexpected(early, "a send on the incomplete communicator")
			}
			if d.Size() != 2 || d.Rank() != 0 {
				return fmt.Errorf("got rank %d of %d", d.Rank(), d.Size())
			}
			if err := Send(world, engineapi.Standard, nil, 1, 0); err != nil {
				return err
			}
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		return ring(d, 0, 1)
	})
}

// TestIdupFailsIfTheRanksDiffer checks that Idup at one rank and Split at another end with an error.
func TestIdupFailsIfTheRanksDiffer(t *testing.T) {
	inWorld(t, 2, func(world *Comm) error {
		d := new(Comm)
		if world.Rank() == 0 {
			if _, err := Split(world, d, 0, 0); err == nil {
				return errors.New("Split succeeded")
			}
			return nil
		}
		r, err := Idup(world, d, nil, nil, "Idup")
		if err != nil {
			return err
		}
		if _, err = r.Wait(); err == nil || !strings.Contains(err.Error(), errDifferentOrder.Error()) {
			return unexpected(err, "Idup")
		}
		if err := d.Check(); !errors.Is(err, ErrComm) {
			return unexpected(err, "the communicator of an Idup that failed")
		}
		return nil
	})
}

// TestCreateGroupFailsIfTheGroupsDiffer checks that members that pass different groups get an error.
func TestCreateGroupFailsIfTheGroupsDiffer(t *testing.T) {
	inWorld(t, 2, func(world *Comm) error {
		members := []int{world.Rank(), 1 - world.Rank()}
		_, err := CreateGroup(world, new(Comm), Group{Members: members, Self: world.Rank()}, 1)
		if err == nil || !strings.Contains(err.Error(), errDifferentOrder.Error()) {
			return unexpected(err, "CreateGroup")
		}
		return ring(world, 0, 1)
	})
}

// TestInvalidCallsAreRefused checks that each call with an invalid communicator or argument has the
// error class of the standard, and that its error names the argument.
func TestInvalidCallsAreRefused(t *testing.T) {
	cases := []struct {
		name  string
		call  func(world *Comm) error
		class Class
		says  string
	}{
		{"no communicator", func(*Comm) error { return (*Comm)(nil).Check() }, ErrComm, "which is nil"},
		{"no intercommunicator", func(w *Comm) error { return Merge(w, nil, true) }, ErrComm, "is not an intercommunicator"},
		{"splitting no intercommunicator", func(w *Comm) error { return second(SplitInter(w, nil, nil, 0, 0)) }, ErrComm, "is not an intercommunicator"},
		{"creating from no intercommunicator", func(w *Comm) error { return second(CreateInter(w, nil, nil, Group{})) }, ErrComm, "is not an intercommunicator"},
		{"a destination outside", func(w *Comm) error { return w.CheckDest(2, 0) }, ErrRank, "dest 2, ranks are 0..1"},
		{"a wildcard as destination", func(w *Comm) error { return w.CheckDest(AnySource, 0) }, ErrRank, "dest -1"},
		{"a wildcard as tag of a send", func(w *Comm) error { return w.CheckDest(0, AnyTag) }, ErrTag, "tag -1"},
		{"a tag that is too large", func(w *Comm) error { return w.CheckDest(ProcNull, MaxTag+1) }, ErrTag, "tag 2147483648"},
		{"a source outside", func(w *Comm) error { return w.CheckSource(Undefined, 0) }, ErrRank, "source -3"},
		{"a negative tag of a receive", func(w *Comm) error { return w.CheckSource(0, -2) }, ErrTag, "tag -2"},
		{"a negative color", func(w *Comm) error { return second(Split(w, nil, -w.Rank(), 0)) }, ErrArg, "rank 1 passes color -1"},
		{"a group of strangers", func(w *Comm) error { return second(Create(w, nil, Group{Members: []int{5}})) }, ErrGroup, "the group of rank 0 has 1 members"},
		{"a local leader outside", func(w *Comm) error { return IntercommCreate(w, nil, nil, 2, w, 0, 0) }, ErrRank, "localLeader 2"},
		{"freeing the world", Free, ErrComm, `"world" cannot be freed`},
		{"a freed communicator", func(w *Comm) error {
			d := new(Comm)
			if err := Dup(w, d, nil, nil); err != nil {
				return err
			}
			d.SetName("copy")
			return errors.Join(Free(d), d.CheckDest(0, 0))
		}, ErrComm, `"copy" was freed`},
		{"an attribute without a key", func(w *Comm) error { return PutAttribute(w, nil, 1) }, ErrKeyval, "the key is nil"},
		{"deleting an attribute without a key", func(w *Comm) error { return DeleteAttribute(w, nil) }, ErrKeyval, "the key is nil"},
		{"an attribute of no communicator", func(*Comm) error { return PutAttribute(nil, new(Keyval), 1) }, ErrComm, "which is nil"},
		{"an attribute that cannot be deleted", func(w *Comm) error {
			stays := &Keyval{Delete: func(*Comm, any) error { return errors.New("in use") }}
			return errors.Join(PutAttribute(w, stays, 1), PutAttribute(w, stays, 2))
		}, ErrOther, "the attribute's delete function: in use"},
		{"a truncated message", func(w *Comm) error {
			if err := Send(w, engineapi.Standard, []byte("long"), w.Rank(), 0); err != nil {
				return err
			}
			return second(Recv(w, nil, w.Rank(), 0))
		}, ErrTruncate, "message of 4 bytes from rank "},
	}
	inWorld(t, 2, func(world *Comm) error {
		for _, c := range cases {
			if err := c.call(world); !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
				return unexpected(err, "%s: want class %d and %q", c.name, c.class, c.says)
			}
		}
		return ring(world, 0, 1)
	})
}
