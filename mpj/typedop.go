package mpj

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// A TypedOp is an operation on items of a datatype, for ReduceTyped and similar functions. OpOf
// returns a TypedOp.
type TypedOp struct {
	combine func(in, inout []byte) // combines items that are laid out as in a []S; nil in the zero TypedOp
	extent  int                    // size of an item in bytes
	code    uintptr                // address of the function, for its name
	err     *Error
}

// OpOf returns the operation that combines vectors of S with op, as an Op combines vectors of
// elements: inout[i] = in[i] op inout[i]. One S is one item of the datatype, and reductions never
// split an item. S can be an array or a struct, for example a 2×2 matrix:
//
//	type matrix [4]float64
//
//	four := mpj.TypeOf[float64]().Contiguous(4) // or mpj.TypeStructOf for a struct
//	product := mpj.OpOf(func(in, inout []matrix) { ... })
//	err := mpj.AllreduceTyped(comm, four.At(mine, 0, n), four.At(all, 0, n), product)
//
// The extent of the datatype must be the size of S. Parts of S that the datatype does not contain
// are zero in both vectors, and op's results for them are ignored. The requirements of Op also apply
// to op. S may contain only the types that TypeStructOf accepts. If op is a result of Items, an item
// consists of several S.
func OpOf[S any](op func(in, inout []S)) TypedOp {
	t := reflect.TypeFor[S]()
	if err := checkPlain(t); err != nil {
		return TypedOp{err: fault("OpOf", core.Wrap(core.ErrOp, err))}
	}
	if op == nil {
		return TypedOp{err: fault("OpOf", core.Wrap(core.ErrOp, errors.New("op is nil")))}
	}
	size, length := int(t.Size()), itemLength(op)
	if size == 0 || length < 1 || length > math.MaxInt/size {
		return TypedOp{err: fault("OpOf", core.Wrap(core.ErrOp, fmt.Errorf("an item consists of %d values of %d bytes", length, size)))}
	}
	return TypedOp{
		combine: func(in, inout []byte) { op(elementsOf[S](in), elementsOf[S](inout)) },
		extent:  size * length,
		code:    reflect.ValueOf(op).Pointer(),
	}
}

// usable returns the reason why call cannot use op, or nil.
func (op TypedOp) usable(call string) *Error {
	switch {
	case op.err != nil:
		return &Error{Class: op.err.Class, Op: call, Rank: Undefined, Detail: op.err.Op, Err: op.err.Err}
	case op.combine == nil:
		return fault(call, core.Wrap(core.ErrOp, errors.New("zero TypedOp: create one with OpOf")))
	}
	return nil
}

// core returns op as an argument of call.
func (op TypedOp) core(call string) core.ItemOp {
	items := core.ItemOp{Combine: op.combine, Extent: op.extent}
	if err := op.usable(call); err != nil {
		items.Invalid = err
	}
	return items
}
