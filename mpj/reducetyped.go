package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// Reductions of items of datatypes.

// ReduceTyped is Reduce for items of datatypes: op combines the items of send of all ranks, in rank
// order, into root's recv. At other ranks recv is not used and may be the zero Typed. At root, a zero
// Typed as send has the meaning of MPI_IN_PLACE. The datatypes of all ranks have the same sequence of
// elements.
func ReduceTyped(c *Comm, send, recv Typed, op TypedOp, root int) error {
	return reduceItems(c, typedCall(c, "ReduceTyped", op), core.ReduceItems(send.argument("ReduceTyped"), recv.argument("ReduceTyped"), op.core("ReduceTyped"), root))
}

// IreduceTyped is the nonblocking form of ReduceTyped.
func IreduceTyped(c *Comm, send, recv Typed, op TypedOp, root int) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IreduceTyped", op), core.ReduceItems(send.argument("IreduceTyped"), recv.argument("IreduceTyped"), op.core("IreduceTyped"), root))
}

// AllreduceTyped is ReduceTyped with the result at every rank. If send is the zero Typed, the items
// of recv are combined.
func AllreduceTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return reduceItems(c, typedCall(c, "AllreduceTyped", op), core.AllreduceItems(send.argument("AllreduceTyped"), recv.argument("AllreduceTyped"), op.core("AllreduceTyped")))
}

// IallreduceTyped is the nonblocking form of AllreduceTyped.
func IallreduceTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IallreduceTyped", op), core.AllreduceItems(send.argument("IallreduceTyped"), recv.argument("IallreduceTyped"), op.core("IallreduceTyped")))
}

// ScanTyped is Scan for items of datatypes.
func ScanTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return reduceItems(c, typedCall(c, "ScanTyped", op), core.ScanItems(send.argument("ScanTyped"), recv.argument("ScanTyped"), op.core("ScanTyped")))
}

// IscanTyped is the nonblocking form of ScanTyped.
func IscanTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IscanTyped", op), core.ScanItems(send.argument("IscanTyped"), recv.argument("IscanTyped"), op.core("IscanTyped")))
}

// ExscanTyped is Exscan for items of datatypes. recv of rank 0 is unchanged.
func ExscanTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return reduceItems(c, typedCall(c, "ExscanTyped", op), core.ExscanItems(send.argument("ExscanTyped"), recv.argument("ExscanTyped"), op.core("ExscanTyped")))
}

// IexscanTyped is the nonblocking form of ExscanTyped.
func IexscanTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IexscanTyped", op), core.ExscanItems(send.argument("IexscanTyped"), recv.argument("IexscanTyped"), op.core("IexscanTyped")))
}

// ReduceScatterBlockTyped is ReduceScatterBlock for items of datatypes: send has Size() times the
// items of recv.
func ReduceScatterBlockTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return reduceItems(c, typedCall(c, "ReduceScatterBlockTyped", op), core.ReduceScatterBlockItems(send.argument("ReduceScatterBlockTyped"), recv.argument("ReduceScatterBlockTyped"), op.core("ReduceScatterBlockTyped")))
}

// IreduceScatterBlockTyped is the nonblocking form of ReduceScatterBlockTyped.
func IreduceScatterBlockTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IreduceScatterBlockTyped", op), core.ReduceScatterBlockItems(send.argument("IreduceScatterBlockTyped"), recv.argument("IreduceScatterBlockTyped"), op.core("IreduceScatterBlockTyped")))
}

// ReduceScatterTyped is ReduceScatter for items of datatypes: the part of rank i has counts[i] items.
func ReduceScatterTyped(c *Comm, send, recv Typed, counts []int, op TypedOp) error {
	return reduceItems(c, typedCall(c, "ReduceScatterTyped", op), core.ReduceScatterItems(send.argument("ReduceScatterTyped"), recv.argument("ReduceScatterTyped"), counts, op.core("ReduceScatterTyped")))
}

// IreduceScatterTyped is the nonblocking form of ReduceScatterTyped.
func IreduceScatterTyped(c *Comm, send, recv Typed, counts []int, op TypedOp) (*Request, error) {
	return beginReduceItems(c, typedCall(c, "IreduceScatterTyped", op), core.ReduceScatterItems(send.argument("IreduceScatterTyped"), recv.argument("IreduceScatterTyped"), counts, op.core("IreduceScatterTyped")))
}

// ReduceLocalTyped is ReduceLocal for items of datatypes.
func ReduceLocalTyped(in, inout Typed, op TypedOp) error {
	const call = "ReduceLocalTyped"
	if err := op.usable(call); err != nil {
		return err
	}
	for _, x := range []Typed{in, inout} {
		if err := x.usable(call); err != nil {
			return err
		}
		if err := op.core(call).Fits(x.buffer.Type); err != nil {
			return errorOf(call, err)
		}
	}
	if in.buffer.Count != inout.buffer.Count || in.Size() != inout.Size() {
		return failf(ErrBuffer, call, "in has %d items of %d bytes and inout %d of %d", in.buffer.Count, in.buffer.Type.Size(), inout.buffer.Count, inout.buffer.Type.Size())
	}
	op.core(call).ReduceLocal(in.buffer, inout.buffer)
	return nil
}

// reduceItems carries out a reduction of items.
func reduceItems(c *Comm, call core.Call, x core.ItemReduction) error {
	return c.wrap(call.Name, x.Run(c.core(), call))
}

// beginReduceItems is the nonblocking form of reduceItems.
func beginReduceItems(c *Comm, call core.Call, x core.ItemReduction) (*Request, error) {
	r, err := x.Begin(c.core(), call)
	return (*Request)(r), c.wrap(call.Name, err)
}

// typedCall describes a call of function name that combines items with op.
func typedCall(c *Comm, name string, op TypedOp) core.Call {
	call := core.Call{Name: name}
	if c.compares() {
		call.Operation = operationName(op.code)
	}
	return call
}

// argument returns x as an argument of call.
func (x Typed) argument(call string) core.Items {
	items := core.Items{Buffer: x.buffer, Null: x.err == nil && x.buffer.Type == nil}
	if err := x.usable(call); err != nil {
		items.Invalid = err
	}
	return items
}
