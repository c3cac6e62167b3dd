package mpj

import (
	"cmp"
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// An exchange is this rank's part of a neighbourhood collective, with one block for each edge.
type exchange struct {
	in, out    []edge
	recv, send [][]byte
	call       func() calls.Call // returns the call to compare, with checks
}

// newExchange returns an exchange with the edges of this rank in the topology of c, and without
// blocks. The elements of its blocks are of type T.
func newExchange[T Element](c *Comm, op string) (*exchange, error) {
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	if c.topology == nil {
		return nil, c.failf(ErrTopology, op, "communicator %q has no topology", c.Name())
	}
	if t, ok := c.topology.(*graph); ok && !t.symmetric {
		return nil, c.failf(ErrTopology, op, "the graph has edges in one direction only")
	}
	x := new(exchange)
	x.in, x.out = c.topology.edges(c.Rank())
	x.call = func() calls.Call {
		k := elementCall[T](calls.None, calls.None)
		k.Out, k.In = edgeParts(x.out, x.send, sizeOf[T]()), edgeParts(x.in, x.recv, sizeOf[T]())
		return k
	}
	return x, nil
}

// agreeOnExchange compares x with the exchanges of the other ranks, if checks are on. If x is nil,
// all ranks fail in the same way, because the communicator does not support the call.
func (c *Comm) agreeOnExchange(op string, x *exchange, err error) error {
	if x == nil || !c.world.checks {
		return err
	}
	return c.agree(op, x.call(), err)
}

// now performs exchange x, unless err is not nil.
func (c *Comm) now(op string, x *exchange, err error) error {
	if err := c.agreeOnExchange(op, x, err); err != nil {
		return err
	}
	return c.wrap(op, c.exchangeBlocks(x, neighbourhoodSlot))
}

// later starts exchange x, unless err is not nil.
func (c *Comm) later(op string, x *exchange, err error) (*Request, error) {
	if err := c.agreeOnExchange(op, x, err); err != nil {
		return nil, err
	}
	return c.start(op, func(slot uint32) error { return c.exchangeBlocks(x, slot) }), nil
}

// edgeBlocks checks the arguments of op that describe the n blocks of a buffer of length elements.
func (c *Comm) edgeBlocks(op, buffer string, counts, displs []int, n, length int) (blocks, error) {
	if len(counts) != n || displs != nil && len(displs) != n {
		return blocks{}, c.failf(ErrCount, op, "%d counts and %d displacements of %s for %d neighbours", len(counts), len(displs), buffer, n)
	}
	b := blocks{counts, displs}
	if displs == nil {
		b = packed(counts)
	}
	for i, k := range b.counts {
		if k < 0 || b.displs[i] < 0 || b.displs[i] > length-k {
			return blocks{}, c.failf(ErrCount, op, "%s has %d elements, but the block of neighbour %d has %d at offset %d", buffer, length, i, k, b.displs[i])
		}
	}
	return b, nil
}

// divides reports whether length elements can be divided equally among n neighbours.
func divides(n, length int) bool { return n == 0 && length == 0 || n > 0 && length%n == 0 }

// shares returns n equal blocks that together have length elements.
func shares(n, length int) blocks { return evenly(n, length/max(n, 1)) }

// partsOf returns the blocks of buf as bytes.
func partsOf[T Element](buf []T, b blocks) [][]byte {
	parts := make([][]byte, len(b.counts))
	for i := range parts {
		parts[i] = bytesOf(block(buf, b, i))
	}
	return parts
}

// repeated returns the bytes of buf n times.
func repeated[T Element](buf []T, n int) [][]byte {
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = bytesOf(buf)
	}
	return parts
}

// exchangeBlocks exchanges the blocks of x. It posts all receives before it sends. If a block cannot
// be sent, it still sends the others and completes all receives, so that no receive into the
// caller's buffer stays posted.
func (c *Comm) exchangeBlocks(x *exchange, slot uint32) error {
	receives, sends := make([]*engine.Request, len(x.in)), make([]*engine.Request, len(x.out))
	for i, e := range x.in {
		if e.rank == ProcNull {
			continue
		}
		r, err := c.engine().Irecv(c.context(slot), c.worldRank(e.rank), e.tag, x.recv[i])
		if err != nil {
			return err
		}
		receives[i] = r
	}
	var unsent error
	for i, e := range x.out {
		if e.rank == ProcNull {
			continue
		}
		r, err := c.engine().Isend(c.context(slot), c.worldRank(e.rank), e.tag, x.send[i], engineapi.Standard)
		if err != nil { // unless the engine has stopped, the payload is too long; an empty message tells the receiver
			unsent = cmp.Or(unsent, err)
			r, _ = c.engine().Isend(c.context(slot), c.worldRank(e.rank), e.tag, nil, engineapi.Standard)
		}
		sends[i] = r
	}
	return c.complete(x, receives, sends, unsent)
}

// complete waits for all receives and sends. Each received message must have the length of its
// block. After a wrong length, complete still waits for the other receives, so that no receive stays
// posted for messages of the next exchange. wrong is an earlier error, which takes precedence, or
// nil. Only the end of the engine ends the wait early.
func (c *Comm) complete(x *exchange, receives, sends []*engine.Request, wrong error) error {
	for i, r := range receives {
		if r == nil {
			continue
		}
		s, err := c.engine().Wait(r)
		var long *engineapi.TruncateError
		if err != nil && !errors.As(err, &long) {
			return err
		}
		if s.Size != len(x.recv[i]) && wrong == nil {
			wrong = &collective.MismatchError{From: x.in[i].rank, To: c.Rank(), Got: s.Size, Want: len(x.recv[i])}
		}
	}
	for _, r := range sends {
		if r == nil {
			continue
		}
		if _, err := c.engine().Wait(r); err != nil {
			return err
		}
	}
	return wrong
}
