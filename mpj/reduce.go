package mpj

import (
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// elementsOf is the inverse of bytesOf and memoryOf.
func elementsOf[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// reductionOf returns op, whose items have item elements, as an operation on bytes. It is short
// enough to be inlined, so that the result stays on the stack.
func reductionOf[T Element](op Op[T], item int) collective.Reduction {
	return collective.Reduction{
		Size:    sizeOf[T]() * item,
		Combine: func(in, inout []byte) { applyOp(op, elementsOf[T](in), elementsOf[T](inout)) },
	}
}

// applyOp calls op, and then clears the padding of the result, which op may have changed.
func applyOp[T Element](op Op[T], in, inout []T) {
	op(in, inout)
	bytesOf(inout)
}

// checkReduction returns the contribution of this rank to a reduction without a root.
func checkReduction[T Element](c *Comm, op string, send, recv []T, combine Op[T]) ([]T, error) {
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	from, err := contribution(c, op, send, recv)
	if err == nil {
		err = checkOp(c, op, combine, len(from))
	}
	if c.world.checks {
		err = checkItemsOf(c, op, combine, from, err)
		err = c.agree(op, placed(reductionCall(calls.None, len(from), combine), send, len(from)), err)
	}
	return from, err
}

// contribution returns the contribution of this rank to a reduction with result recv: send, or recv
// if send is nil.
func contribution[T Element](c *Comm, op string, send, recv []T) ([]T, error) {
	if send == nil {
		return recv, nil
	}
	if len(recv) != len(send) {
		return nil, c.failf(ErrBuffer, op, "send has %d elements and recv %d", len(send), len(recv))
	}
	return send, nil
}

// Reduce combines the send buffers of all ranks with op, element by element and in rank order, into
// root's recv. At other ranks recv is not used and may be nil. send and recv may be the same slice;
// at root, a nil send has the same effect.
func Reduce[T Element](c *Comm, send, recv []T, op Op[T], root int) error {
	send, err := checkReduce(c, "Reduce", send, recv, op, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Reduce", t.Reduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)), root))
}

// Ireduce is the nonblocking form of Reduce.
func Ireduce[T Element](c *Comm, send, recv []T, op Op[T], root int) (*Request, error) {
	send, err := checkReduce(c, "Ireduce", send, recv, op, root)
	if err != nil {
		return nil, err
	}
	return c.background("Ireduce", func(t *collective.Team) error {
		return t.Reduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)), root)
	})
}

func checkReduce[T Element](c *Comm, op string, send, recv []T, combine Op[T], root int) ([]T, error) {
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	from, err := send, c.checkRoot(op, root)
	if c.Rank() == root {
		from, err = contribution(c, op, send, recv)
	}
	if err == nil {
		err = checkOp(c, op, combine, len(from))
	}
	if c.world.checks {
		err = checkItemsOf(c, op, combine, from, err)
		err = c.agree(op, reductionCall(root, len(from), combine), err)
	}
	return from, err
}

// Allreduce is Reduce with the result at every rank. If send is nil, the elements of recv are
// combined.
func Allreduce[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Allreduce", send, recv, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Allreduce", t.Allreduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iallreduce is the nonblocking form of Allreduce.
func Iallreduce[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, err := checkReduction(c, "Iallreduce", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("Iallreduce", func(t *collective.Team) error {
		return t.Allreduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

// Scan combines, at each rank, the send buffers of ranks 0 to that rank, in order, into recv. send
// and recv may be the same slice; a nil send has the same effect.
func Scan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Scan", send, recv, op)
	if err != nil {
		return err
	}
	copy(recv, send)
	t := c.team(collectiveSlot)
	return c.wrap("Scan", t.Scan(bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iscan is the nonblocking form of Scan.
func Iscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, err := checkReduction(c, "Iscan", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("Iscan", func(t *collective.Team) error {
		copy(recv, send)
		return t.Scan(bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

// Exscan is Scan without the rank's own contribution: rank i gets the combination of ranks 0 to
// i-1. recv of rank 0 is unchanged.
func Exscan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Exscan", send, recv, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Exscan", t.Exscan(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iexscan is the nonblocking form of Exscan.
func Iexscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, err := checkReduction(c, "Iexscan", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("Iexscan", func(t *collective.Team) error {
		return t.Exscan(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

// ReduceLocal combines in with inout, element by element, into inout, as reductions do. It sends no
// messages.
func ReduceLocal[T Element](in, inout []T, op Op[T]) error {
	if len(in) != len(inout) {
		return failf(ErrBuffer, "ReduceLocal", "in has %d elements and inout %d", len(in), len(inout))
	}
	if class, why := unfit(op, len(in)); why != "" {
		return failf(class, "ReduceLocal", "%s", why)
	}
	if len(in) > 0 {
		op(in, inout)
	}
	return nil
}
