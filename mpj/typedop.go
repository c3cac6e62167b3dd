package mpj

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
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

// name returns the name of the function of op, or "" if it has none.
func (op TypedOp) name() string {
	if f := runtime.FuncForPC(op.code); f != nil {
		return calls.OperationName(f.Name())
	}
	return ""
}

// fits returns why op cannot combine items of a datatype, or nil. The extents must be equal, and the
// data of an item must lie within its extent.
func (op TypedOp) fits(of *layout.Layout) error {
	if of.Extent() != op.extent {
		return fmt.Errorf("an item of the datatype has an extent of %d bytes, and an item of the operation has %d", of.Extent(), op.extent)
	}
	if low, high := of.TrueLB(), of.TrueLB()+of.TrueExtent(); low < 0 || high > op.extent {
		return fmt.Errorf("an item of the datatype has data at bytes %d to %d, outside its extent of %d bytes", low, high-1, op.extent)
	}
	return nil
}

// reduction returns op as an operation on packed items of a datatype that fits op.
func (op TypedOp) reduction(of *layout.Layout) collective.Reduction {
	size := max(of.Size(), 1) // without data, vectors are empty
	if _, n, ok := of.Run(1); ok && n == op.extent {
		return collective.Reduction{Size: size, Combine: op.combine}
	}
	return collective.Reduction{Size: size, Combine: func(in, inout []byte) { op.combinePacked(of, in, inout) }}
}

// combinePacked unpacks the items of in and inout, combines them, and packs the result into inout.
func (op TypedOp) combinePacked(of *layout.Layout, in, inout []byte) {
	count := len(in) / of.Size()
	length := count * op.extent
	items, scratch := core.TakeScratch(2 * length)
	clear(items)
	lower, upper := items[:length], items[length:]
	of.Unpack(lower, 0, count, in)
	of.Unpack(upper, 0, count, inout)
	op.combine(lower, upper)
	of.Append(inout[:0], upper, 0, count)
	scratch.Put()
}
