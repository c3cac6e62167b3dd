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
// blocking and nonblocking operations of a communicator in the same order.

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

// argument returns s as a buffer argument of package core.
func argument[T Element](s []T) core.Elements {
	return core.Elements{Bytes: bytesOf(s), Length: len(s), Unit: sizeOf[T](), Null: s == nil}
}

// callOf describes a call of function op on elements of type T. It is short enough to be inlined.
func callOf[T Element](c *Comm, op string) (call core.Call) {
	call.Name = op
	if c != nil && c.world.checks {
		call.Type = elementName[T]()
	}
	return call
}

// run carries out a collective without an operation.
func run(c *Comm, call core.Call, p *core.Plan) error { return combine(c, call, p, core.Op{}) }

// begin is the nonblocking form of run.
func begin(c *Comm, call core.Call, p *core.Plan) (*Request, error) {
	return beginCombine(c, call, p, core.Op{})
}

// combine carries out a collective.
func combine(c *Comm, call core.Call, p *core.Plan, op core.Op) error {
	return c.wrap(call.Name, core.Run(c.core(), call, p, op))
}

// beginCombine is the nonblocking form of combine.
func beginCombine(c *Comm, call core.Call, p *core.Plan, op core.Op) (*Request, error) {
	r, err := core.Begin(c.core(), call, p, op)
	return (*Request)(r), c.wrap(call.Name, err)
}

// Barrier returns when every rank of c has called Barrier.
func Barrier(c *Comm) error { return run(c, core.Call{Name: "Barrier"}, core.Barrier()) }

// Ibarrier is the nonblocking form of Barrier: the request is complete when every rank has called
// Ibarrier.
func Ibarrier(c *Comm) (*Request, error) {
	return begin(c, core.Call{Name: "Ibarrier"}, core.Barrier())
}

// Bcast copies root's buf to the buf of every rank. All ranks pass the same length.
func Bcast[T Element](c *Comm, buf []T, root int) error {
	return run(c, callOf[T](c, "Bcast"), core.Bcast(argument(buf), root))
}

// Ibcast is the nonblocking form of Bcast.
func Ibcast[T Element](c *Comm, buf []T, root int) (*Request, error) {
	return begin(c, callOf[T](c, "Ibcast"), core.Bcast(argument(buf), root))
}

// BcastTyped is Bcast for items of a datatype. The layouts may differ between ranks, but all items
// must have the same total size.
func BcastTyped(c *Comm, x Typed, root int) error {
	const op = "BcastTyped"
	if err := x.check(c, op); err != nil {
		return err
	}
	return c.wrap(op, core.BcastBuffer(&c.base, callOf[byte](c, op), x.buffer, root))
}
