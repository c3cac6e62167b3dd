package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// Collectives run over fixed trees and rings, on a context of their own, and
// only receive from named ranks. So what they compute depends on the arguments
// and on n alone: every run and every replica gets the same bits.
//
// All ranks of a communicator call the same collectives in the same order,
// with the same root and with lengths that fit each other.

// A step is the tag of a collective's messages. One for each collective keeps
// a program that calls them in different orders from mixing their data.
type step int32

const (
	barrierStep step = iota
	bcastStep
	reduceStep
	gatherStep
	scatterStep
	allgatherStep
	alltoallStep
	scanStep
)

func (c *Comm) send(s step, b []byte, dest int) error {
	return c.engine.Send(c.context(collectiveSlot), c.worldRank(dest), int32(s), b, engine.Standard)
}

// recv receives exactly len(b) bytes.
func (c *Comm) recv(s step, b []byte, source int) error {
	got, err := c.engine.Recv(c.context(collectiveSlot), c.worldRank(source), int32(s), b)
	return c.exact(got, err, b, source)
}

// exact makes an error of a message that is shorter than its place.
func (c *Comm) exact(got engine.Status, err error, b []byte, source int) error {
	if err == nil && got.Size != len(b) {
		err = fmt.Errorf("rank %d sent %d bytes where rank %d expects %d", source, got.Size, c.rank, len(b))
	}
	return err
}

// exchange sends to one rank and receives from another at the same time.
func (c *Comm) exchange(s step, send []byte, dest int, recv []byte, source int) error {
	got, err := c.engine.Sendrecv(c.context(collectiveSlot), c.worldRank(dest), int32(s), send, c.worldRank(source), int32(s), recv)
	return c.exact(got, err, recv, source)
}

// Barrier returns when every rank of c has called it.
func Barrier(c *Comm) error {
	if err := c.checkCollective("Barrier"); err != nil {
		return err
	}
	for k := 1; k < c.size; k *= 2 {
		if err := c.exchange(barrierStep, nil, (c.rank+k)%c.size, nil, (c.rank-k+c.size)%c.size); err != nil {
			return c.wrap("Barrier", err)
		}
	}
	return nil
}

// Bcast copies root's buf to the buf of every rank. All have the same length.
func Bcast[T Element](c *Comm, buf []T, root int) error {
	if err := c.checkRoot("Bcast", root); err != nil {
		return err
	}
	return c.wrap("Bcast", c.bcast(bytesOf(buf), root))
}

func (c *Comm) bcast(b []byte, root int) error {
	if parent, ok := c.parent(root); ok {
		if err := c.recv(bcastStep, b, parent); err != nil {
			return err
		}
	}
	return c.passOn(b, root)
}

// bcastWhole is bcast for receivers that do not know the length.
func (c *Comm) bcastWhole(b []byte, root int) ([]byte, error) {
	if parent, ok := c.parent(root); ok {
		var err error
		if b, _, err = c.engine.RecvWhole(c.context(collectiveSlot), c.worldRank(parent), int32(bcastStep)); err != nil {
			return nil, err
		}
	}
	return b, c.passOn(b, root)
}

// The binomial tree of root: with ranks counted from root, the parent of a
// rank is the one without its lowest set bit, and its children add one lower
// bit each.

func (c *Comm) parent(root int) (rank int, ok bool) {
	v := (c.rank - root + c.size) % c.size
	return (v&(v-1) + root) % c.size, v != 0
}

// passOn sends b to the children in the tree, the one with the largest subtree
// first.
func (c *Comm) passOn(b []byte, root int) error {
	v := (c.rank - root + c.size) % c.size
	bit := 1
	for bit < c.size && v&bit == 0 {
		bit *= 2
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit >= c.size {
			continue
		}
		if err := c.send(bcastStep, b, (v+bit+root)%c.size); err != nil {
			return err
		}
	}
	return nil
}
