package mpj

import (
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// All ranks of a communicator call the same collectives in the same order, with the same root and
// operation, and with matching lengths. A mismatched length is an error at the receiving rank; the
// error names both ranks and both lengths.
//
// The results of collectives depend only on the arguments and the number of ranks, so every run and
// every replica gets the same bits. Package collective describes the algorithms and the reasons; its
// table chooses an algorithm by size. The environment variable P2PMPI_COLL overrides the choice, as
// in
//
//	P2PMPI_COLL=allreduce=ring,bcast=binomial
//
// P2PMPI_COLL must be the same at all ranks.
//
// A nil send buffer has the meaning of MPI_IN_PLACE: this rank's contribution is already in the
// place of its part of the result. In a collective without a root, either all ranks or no ranks pass
// nil.
//
// Functions whose names begin with I are nonblocking. The operation proceeds while the program
// computes; all buffers belong to the operation until the request is complete. All ranks start the
// blocking and nonblocking operations of a communicator in the same order. Each nonblocking function
// repeats the one line of its blocking form, because a shared closure would cost the blocking form
// an allocation.

// collectiveVariable is the environment variable that selects algorithms.
const collectiveVariable = proclink.CollectiveVariable

// forcedByUser returns the algorithms that the environment variable selects.
func forcedByUser() (*collective.Forced, error) {
	algorithms, err := collective.Force(os.Getenv(collectiveVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", collectiveVariable, err)
	}
	return algorithms, nil
}

// team returns the ranks of c for an operation whose messages use the context of slot.
func (c *Comm) team(slot uint32) collective.Team { return core.TeamOf(&c.base, slot) }

// start runs collective as the next nonblocking operation of c.
func (c *Comm) start(op string, collective func(slot uint32) error) *Request {
	return (*Request)(core.Start(&c.base, op, collective))
}

// background carries out a collective while the program continues.
func (c *Comm) background(op string, carryOut func(*collective.Team) error) (*Request, error) {
	return c.start(op, func(slot uint32) error {
		t := c.team(slot)
		return carryOut(&t)
	}), nil
}

// Barrier returns when every rank of c has called Barrier.
func Barrier(c *Comm) error {
	if err := c.checkBarrier("Barrier"); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Barrier", t.Barrier())
}

// Ibarrier is the nonblocking form of Barrier: the request is complete when every rank has called
// Ibarrier.
func Ibarrier(c *Comm) (*Request, error) {
	if err := c.checkBarrier("Ibarrier"); err != nil {
		return nil, err
	}
	return c.background("Ibarrier", (*collective.Team).Barrier)
}

func (c *Comm) checkBarrier(op string) error {
	if err := c.checkIntra(op); err != nil {
		return err
	}
	return c.agree(op, plainCall(""), nil)
}

// Bcast copies root's buf to the buf of every rank. All ranks pass the same length.
func Bcast[T Element](c *Comm, buf []T, root int) error {
	if err := checkBcast(c, "Bcast", buf, root); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Bcast", t.Bcast(bytesOf(buf), root))
}

// Ibcast is the nonblocking form of Bcast.
func Ibcast[T Element](c *Comm, buf []T, root int) (*Request, error) {
	if err := checkBcast(c, "Ibcast", buf, root); err != nil {
		return nil, err
	}
	return c.background("Ibcast", func(t *collective.Team) error { return t.Bcast(bytesOf(buf), root) })
}

func checkBcast[T Element](c *Comm, op string, buf []T, root int) error {
	if err := c.checkIntra(op); err != nil {
		return err
	}
	err := c.checkRoot(op, root)
	if c.world.checks {
		err = c.agree(op, elementCall[T](root, len(buf)), err)
	}
	return err
}

// BcastTyped is Bcast for items of a datatype. The layouts may differ between ranks, but all items
// must have the same total size.
func BcastTyped(c *Comm, x Typed, root int) error {
	const op = "BcastTyped"
	if err := x.check(c, op); err != nil {
		return err
	}
	b, scratch := x.buffer.Message()
	if err := checkBcast(c, op, b, root); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	if err := t.Bcast(b, root); err != nil {
		return c.wrap(op, err)
	}
	if scratch != nil && c.Rank() != root {
		x.buffer.Unpack(b)
	}
	scratch.Put()
	return nil
}

// bcastWhole is Bcast for receivers that do not know the length.
func (c *Comm) bcastWhole(b []byte, root int) ([]byte, error) {
	t := c.team(collectiveSlot)
	return t.BcastWhole(b, root)
}
