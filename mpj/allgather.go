package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Allgather puts the send of all ranks, in rank order, into the recv of every
// rank, which has Size() times the length of send. With nil send the part of
// this rank is in recv already.
func Allgather[T Element](c *Comm, send, recv []T) error {
	each, err := checkAllgather(c, "Allgather", send, recv)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	copy(recv[c.rank*each:], send)
	return c.wrap("Allgather", t.Allgather(bytesOf(recv), evenBytes[T](each)))
}

// Iallgather is Allgather without waiting.
func Iallgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	each, err := checkAllgather(c, "Iallgather", send, recv)
	if err != nil {
		return nil, err
	}
	return c.background("Iallgather", func(t *collective.Team) error {
		copy(recv[c.rank*each:], send)
		return t.Allgather(bytesOf(recv), evenBytes[T](each))
	})
}

func checkAllgather[T Element](c *Comm, op string, send, recv []T) (each int, err error) {
	if err := c.checkIntra(op); err != nil {
		return 0, err
	}
	each = len(send)
	switch {
	case send == nil && len(recv)%c.size == 0:
		each = len(recv) / c.size
	case len(recv) != c.size*len(send):
		err = c.failf(ErrBuffer, op, "recv has %d elements for %d ranks with %d each", len(recv), c.size, len(send))
	}
	if c.world.checks {
		err = c.agree(op, placed(elementCall[T](calls.None, each), send, each), err)
	}
	return each, err
}

// Allgatherv is Allgather with blocks of different lengths: that of rank i has
// counts[i] elements and goes to recv[displs[i]:]. With nil displs the blocks
// follow each other. All ranks give the same counts.
func Allgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	b, err := checkAllgatherv(c, "Allgatherv", send, recv, counts, displs)
	if err != nil {
		return err
	}
	copy(block(recv, b, c.rank), send)
	t := c.team(collectiveSlot)
	return c.wrap("Allgatherv", t.Allgather(bytesOf(recv), inBytes[T](b)))
}

// Iallgatherv is Allgatherv without waiting.
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	b, err := checkAllgatherv(c, "Iallgatherv", send, recv, counts, displs)
	if err != nil {
		return nil, err
	}
	return c.background("Iallgatherv", func(t *collective.Team) error {
		copy(block(recv, b, c.rank), send)
		return t.Allgather(bytesOf(recv), inBytes[T](b))
	})
}

func checkAllgatherv[T Element](c *Comm, op string, send, recv []T, counts, displs []int) (blocks, error) {
	if err := c.checkIntra(op); err != nil {
		return blocks{}, err
	}
	b, err := c.blocksOf(op, "recv", counts, displs, len(recv))
	if err == nil && send != nil && counts[c.rank] != len(send) {
		err = c.failf(ErrBuffer, op, "send has %d elements, counts[%d] is %d", len(send), c.rank, counts[c.rank])
	}
	if c.world.checks {
		k := elementCall[T](calls.None, calls.None)
		k.Counts = counts
		if err == nil {
			k = placed(k, send, counts[c.rank])
		}
		err = c.agree(op, k, err)
	}
	return b, err
}
