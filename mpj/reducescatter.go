package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// ReduceScatterBlock combines the send buffers of all ranks, whose length is Size() times the length
// of recv, and stores the i-th part of the result in recv of rank i. If send is nil, the elements of
// recv are combined, and the first part of recv gets the result.
func ReduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, recv, err := checkReduceScatterBlock(c, "ReduceScatterBlock", send, recv, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("ReduceScatterBlock", t.ReduceScatter(bytesOf(send), evenBytes[T](len(recv)), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// IreduceScatterBlock is the nonblocking form of ReduceScatterBlock.
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, recv, err := checkReduceScatterBlock(c, "IreduceScatterBlock", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("IreduceScatterBlock", func(t *collective.Team) error {
		return t.ReduceScatter(bytesOf(send), evenBytes[T](len(recv)), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

func checkReduceScatterBlock[T Element](c *Comm, op string, send, recv []T, combine Op[T]) (from, to []T, err error) {
	if err := c.checkIntra(op); err != nil {
		return nil, nil, err
	}
	from, to = send, recv
	switch {
	case send == nil && len(recv)%c.Size() == 0:
		from, to = recv, recv[:len(recv)/c.Size()]
	case len(send) != c.Size()*len(recv):
		err = c.failf(ErrBuffer, op, "send has %d elements and recv %d for %d ranks", len(send), len(recv), c.Size())
	}
	if err == nil {
		err = checkOp(c, op, combine, len(to))
	}
	if c.world.checks {
		err = checkItemsOf(c, op, combine, from, err)
		err = c.agree(op, placed(reductionCall(calls.None, len(to), combine), send, len(to)), err)
	}
	return from, to, err
}

// ReduceScatter is ReduceScatterBlock with parts of different lengths: the part of rank i has
// counts[i] elements, and the parts are contiguous in send. All ranks pass the same counts. If send
// is nil, recv has the length of all parts together.
func ReduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) error {
	send, recv, b, err := checkReduceScatter(c, "ReduceScatter", send, recv, counts, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("ReduceScatter", t.ReduceScatter(bytesOf(send), inBytes[T](b), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// IreduceScatter is the nonblocking form of ReduceScatter.
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) (*Request, error) {
	send, recv, b, err := checkReduceScatter(c, "IreduceScatter", send, recv, counts, op)
	if err != nil {
		return nil, err
	}
	return c.background("IreduceScatter", func(t *collective.Team) error {
		return t.ReduceScatter(bytesOf(send), inBytes[T](b), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

func checkReduceScatter[T Element](c *Comm, op string, send, recv []T, counts []int, combine Op[T]) (from, to []T, b blocks, err error) {
	if err := c.checkIntra(op); err != nil {
		return nil, nil, blocks{}, err
	}
	from, to, b, err = scattering(c, op, send, recv, counts)
	if err == nil {
		err = checkOp(c, op, combine, counts...)
	}
	if c.world.checks {
		err = checkItemsOf(c, op, combine, from, err)
		k := reductionCall(calls.None, calls.None, combine)
		k.Counts = counts
		err = c.agree(op, placed(k, send, len(from)), err)
	}
	return from, to, b, err
}

// scattering returns the input, the output and the blocks of ReduceScatter.
func scattering[T Element](c *Comm, op string, send, recv []T, counts []int) (from, to []T, b blocks, err error) {
	whole := send
	if send == nil {
		whole = recv
	}
	if b, err = c.blocksOf(op, "send", counts, nil, len(whole)); err != nil {
		return nil, nil, blocks{}, err
	}
	if last := c.Size() - 1; b.displs[last]+b.counts[last] != len(whole) {
		return nil, nil, blocks{}, c.failf(ErrCount, op, "send has %d elements, the counts add up to %d", len(whole), b.displs[last]+b.counts[last])
	}
	if send == nil {
		return recv, recv[:counts[c.Rank()]], b, nil
	}
	if counts[c.Rank()] != len(recv) {
		return nil, nil, blocks{}, c.failf(ErrBuffer, op, "recv has %d elements, counts[%d] is %d", len(recv), c.Rank(), counts[c.Rank()])
	}
	return send, recv, b, nil
}
