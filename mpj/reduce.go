package mpj

import (
	"reflect"
	"runtime"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
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
func reductionOf[T Element](op Op[T], item int) core.Op {
	return core.Op{
		Length: item, Unit: sizeOf[T](), Null: op == nil,
		Combine: func(in, inout []byte) { applyOp(op, elementsOf[T](in), elementsOf[T](inout)) },
	}
}

// applyOp calls op, and then clears the padding of the result, which op may have changed.
func applyOp[T Element](op Op[T], in, inout []T) {
	op(in, inout)
	bytesOf(inout)
}

// reductionCall describes a call of function name that combines elements with op. It is short enough
// to be inlined.
func reductionCall[T Element](c *Comm, name string, op Op[T]) core.Call {
	if c != nil && c.world.checks {
		return describedReduction(name, op)
	}
	return core.Call{Name: name}
}

func describedReduction[T Element](name string, op Op[T]) core.Call {
	return core.Call{Name: name, Type: elementName[T](), Operation: operationName(reflect.ValueOf(op).Pointer())}
}

// operationName returns the name of the function at an address, or "" if it has none.
func operationName(pc uintptr) string {
	if f := runtime.FuncForPC(pc); f != nil {
		return calls.OperationName(f.Name())
	}
	return ""
}

// Reduce combines the send buffers of all ranks with op, element by element and in rank order, into
// root's recv. At other ranks recv is not used and may be nil. send and recv may be the same slice;
// at root, a nil send has the same effect.
func Reduce[T Element](c *Comm, send, recv []T, op Op[T], root int) error {
	return combine(c, reductionCall(c, "Reduce", op), core.Reduce(argument(send), argument(recv), root), reductionOf(op, itemLength(op)))
}

// Ireduce is the nonblocking form of Reduce.
func Ireduce[T Element](c *Comm, send, recv []T, op Op[T], root int) (*Request, error) {
	return beginCombine(c, reductionCall(c, "Ireduce", op), core.Reduce(argument(send), argument(recv), root), reductionOf(op, itemLength(op)))
}

// Allreduce is Reduce with the result at every rank. If send is nil, the elements of recv are
// combined.
func Allreduce[T Element](c *Comm, send, recv []T, op Op[T]) error {
	return combine(c, reductionCall(c, "Allreduce", op), core.Allreduce(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// Iallreduce is the nonblocking form of Allreduce.
func Iallreduce[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return beginCombine(c, reductionCall(c, "Iallreduce", op), core.Allreduce(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// Scan combines, at each rank, the send buffers of ranks 0 to that rank, in order, into recv. send
// and recv may be the same slice; a nil send has the same effect.
func Scan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	return combine(c, reductionCall(c, "Scan", op), core.Scan(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// Iscan is the nonblocking form of Scan.
func Iscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return beginCombine(c, reductionCall(c, "Iscan", op), core.Scan(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// Exscan is Scan without the rank's own contribution: rank i gets the combination of ranks 0 to
// i-1. recv of rank 0 is unchanged.
func Exscan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	return combine(c, reductionCall(c, "Exscan", op), core.Exscan(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// Iexscan is the nonblocking form of Exscan.
func Iexscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return beginCombine(c, reductionCall(c, "Iexscan", op), core.Exscan(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// ReduceLocal combines in with inout, element by element, into inout, as reductions do. It sends no
// messages.
func ReduceLocal[T Element](in, inout []T, op Op[T]) error {
	if len(in) != len(inout) {
		return failf(ErrBuffer, "ReduceLocal", "in has %d elements and inout %d", len(in), len(inout))
	}
	if err := reductionOf(op, itemLength(op)).Fits(len(in)); err != nil {
		return errorOf("ReduceLocal", err)
	}
	if len(in) > 0 {
		op(in, inout)
	}
	return nil
}
