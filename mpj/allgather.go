package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Allgather gathers the send buffers of all ranks, in rank order, into recv at every rank. The
// length of recv is Size() times the length of send. If send is nil, this rank's contribution is
// already at its place in recv.
func Allgather[T Element](c *Comm, send, recv []T) error {
	each, err := checkAllgather(c, "Allgather", send, recv)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	copy(recv[c.Rank()*each:], send)
	return c.wrap("Allgather", t.Allgather(bytesOf(recv), evenBytes[T](each)))
}

// Iallgather is the nonblocking form of Allgather.
func Iallgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	each, err := checkAllgather(c, "Iallgather", send, recv)
	if err != nil {
		return nil, err
	}
	return c.background("Iallgather", func(t *collective.Team) error {
		copy(recv[c.Rank()*each:], send)
		return t.Allgather(bytesOf(recv), evenBytes[T](each))
	})
}

func checkAllgather[T Element](c *Comm, op string, send, recv []T) (each int, err error) {
	if err := c.checkIntra(op); err != nil {
		return 0, err
	}
	each = len(send)
	switch {
	case send == nil && len(recv)%c.Size() == 0:
		each = len(recv) / c.Size()
	case len(recv) != c.Size()*len(send):
		err = c.failf(ErrBuffer, op, "recv has %d elements for %d ranks with %d each", len(recv), c.Size(), len(send))
	}
	if c.world.checks {
		err = c.agree(op, placed(elementCall[T](calls.None, each), send, each), err)
	}
	return each, err
}

// Allgatherv is Allgather with blocks of different lengths: the block of rank i has counts[i]
// elements and is stored at recv[displs[i]:]. With nil displs the blocks are contiguous. All ranks
// pass the same counts.
func Allgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	b, err := checkAllgatherv(c, "Allgatherv", send, recv, counts, displs)
	if err != nil {
		return err
	}
	copy(block(recv, b, c.Rank()), send)
	t := c.team(collectiveSlot)
	return c.wrap("Allgatherv", t.Allgather(bytesOf(recv), inBytes[T](b)))
}

// Iallgatherv is the nonblocking form of Allgatherv.
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	b, err := checkAllgatherv(c, "Iallgatherv", send, recv, counts, displs)
	if err != nil {
		return nil, err
	}
	return c.background("Iallgatherv", func(t *collective.Team) error {
		copy(block(recv, b, c.Rank()), send)
		return t.Allgather(bytesOf(recv), inBytes[T](b))
	})
}

func checkAllgatherv[T Element](c *Comm, op string, send, recv []T, counts, displs []int) (blocks, error) {
	if err := c.checkIntra(op); err != nil {
		return blocks{}, err
	}
	b, err := c.blocksOf(op, "recv", counts, displs, len(recv))
	if err == nil && send != nil && counts[c.Rank()] != len(send) {
		err = c.failf(ErrBuffer, op, "send has %d elements, counts[%d] is %d", len(send), c.Rank(), counts[c.Rank()])
	}
	if c.world.checks {
		k := elementCall[T](calls.None, calls.None)
		k.Counts = counts
		if err == nil {
			k = placed(k, send, counts[c.Rank()])
		}
		err = c.agree(op, k, err)
	}
	return b, err
}
