package mpj

import (
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// elementsOf is bytesOf backwards.
func elementsOf[T Element](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

// reductionOf returns op, whose items have so many elements, for bytes. It is
// short enough to be inlined, so that the result stays on the stack.
func reductionOf[T Element](op Op[T], item int) collective.Reduction {
	return collective.Reduction{
		Size:    sizeOf[T]() * item,
		Combine: func(in, inout []byte) { op(elementsOf[T](in), elementsOf[T](inout)) },
	}
}

// checkReduction returns what this rank gives to a reduction without a root.
func checkReduction[T Element](c *Comm, op string, send, recv []T, combine Op[T]) ([]T, error) {
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	from, err := contribution(c, op, send, recv)
	if err == nil {
		err = checkOp(c, op, combine, len(from))
	}
	if c.world.checks {
		err = c.agree(op, placed(reductionCall(calls.None, len(from), combine), send, len(from)), err)
	}
	return from, err
}

// contribution returns what this rank gives to a reduction whose result goes to
// recv: recv itself when send is nil.
func contribution[T Element](c *Comm, op string, send, recv []T) ([]T, error) {
	if send == nil {
		return recv, nil
	}
	if len(recv) != len(send) {
		return nil, c.failf(ErrBuffer, op, "send has %d elements and recv %d", len(send), len(recv))
	}
	return send, nil
}

// Reduce combines the send of all ranks with op, element by element and in
// rank order, into root's recv. Elsewhere recv is not used and may be nil. send
// and recv may be the same slice; at root, send may be nil for that.
func Reduce[T Element](c *Comm, send, recv []T, op Op[T], root int) error {
	send, err := checkReduce(c, "Reduce", send, recv, op, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Reduce", t.Reduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)), root))
}

// Ireduce is Reduce without waiting.
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
	if c.rank == root {
		from, err = contribution(c, op, send, recv)
	}
	if err == nil {
		err = checkOp(c, op, combine, len(from))
	}
	if c.world.checks {
		err = c.agree(op, reductionCall(root, len(from), combine), err)
	}
	return from, err
}

// Allreduce is Reduce with the result at every rank. With nil send the elements
// of recv are combined.
func Allreduce[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Allreduce", send, recv, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Allreduce", t.Allreduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iallreduce is Allreduce without waiting.
func Iallreduce[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, err := checkReduction(c, "Iallreduce", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("Iallreduce", func(t *collective.Team) error {
		return t.Allreduce(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

// Scan combines at each rank the send of ranks 0 up to its own, in order, into
// recv. send and recv may be the same slice, and send may be nil for that.
func Scan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Scan", send, recv, op)
	if err != nil {
		return err
	}
	copy(recv, send)
	t := c.team(collectiveSlot)
	return c.wrap("Scan", t.Scan(bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iscan is Scan without waiting.
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

// Exscan is Scan without the own contribution: rank i gets what ranks 0 up to
// i-1 combine to, and recv of rank 0 is left as it is.
func Exscan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	send, err := checkReduction(c, "Exscan", send, recv, op)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Exscan", t.Exscan(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op))))
}

// Iexscan is Exscan without waiting.
func Iexscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	send, err := checkReduction(c, "Iexscan", send, recv, op)
	if err != nil {
		return nil, err
	}
	return c.background("Iexscan", func(t *collective.Team) error {
		return t.Exscan(bytesOf(send), bytesOf(recv), reductionOf(op, itemLength(op)))
	})
}

// ReduceLocal combines in with inout, element by element, into inout, as the
// reductions do. It sends nothing.
func ReduceLocal[T Element](in, inout []T, op Op[T]) error {
	if len(in) != len(inout) {
		return failf(ErrBuffer, "ReduceLocal", "in has %d elements and inout %d", len(in), len(inout))
	}
	if op == nil {
		return failf(ErrOp, "ReduceLocal", "it is nil")
	}
	if n, length := unfit(op, len(in)); length != 0 {
		return failf(ErrCount, "ReduceLocal", "%d elements, and the operation's items have %d", length, n)
	}
	if len(in) > 0 {
		op(in, inout)
	}
	return nil
}
