package mpj

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Datatype describes the parts of a []T that are data, and their order, as MPI's derived datatypes
// do: for instance a column of a matrix, or some fields of a struct. At combines a datatype with a
// slice into a Typed, which SendTyped and similar functions take.
//
//	column := mpj.TypeOf[float64]().Vector(rows, 1, columns)
//	err := mpj.SendTyped(comm, column.At(matrix, 3, 1), right, 0)
//
// Datatypes are immutable values, which need not be committed or freed. A datatype made from invalid
// arguments is invalid: Err, and every call that uses the datatype, returns the reason.
//
// A message has no gaps and does not describe the layout of its data in memory. Data sent with one
// datatype can be received with any other datatype that has the same sequence of elements, or with
// Recv into a slice.
type Datatype[T any] struct {
	of  *layout.Layout // nil in the zero Datatype and if err is set
	err *Error
}

// TypeOf returns the datatype of one element of type T.
func TypeOf[T Element]() Datatype[T] {
	return Datatype[T]{of: layout.Basic(sizeOf[T]())}
}

// Err returns the reason why t is invalid, or nil.
func (t Datatype[T]) Err() error {
	if err := t.fault(); err != nil {
		return err
	}
	return nil
}

func (t Datatype[T]) fault() *Error {
	if t.err == nil && t.of == nil {
		return fault("Datatype", errors.New("zero Datatype: create one with TypeOf"))
	}
	return t.err
}

// made returns the result of a constructor.
func made[T any](op string, l *layout.Layout, err error) Datatype[T] {
	if err != nil {
		return Datatype[T]{err: fault(op, err)}
	}
	return Datatype[T]{of: l}
}

// derive makes a datatype from t, if t is valid.
func (t Datatype[T]) derive(op string, from func(*layout.Layout) (*layout.Layout, error)) Datatype[T] {
	if err := t.fault(); err != nil {
		return Datatype[T]{err: err}
	}
	l, err := from(t.of)
	return made[T](op, l, err)
}

// Contiguous returns count items of t, one after the other.
func (t Datatype[T]) Contiguous(count int) Datatype[T] {
	return t.derive("Contiguous", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Contiguous(count, l)
	})
}

// Vector returns count blocks of blocklength items each. stride is the distance between the starts
// of consecutive blocks, in items of t.
func (t Datatype[T]) Vector(count, blocklength, stride int) Datatype[T] {
	return t.derive("Vector", func(l *layout.Layout) (*layout.Layout, error) {
		return core.Vector(count, blocklength, stride, l)
	})
}

// Hvector is Vector with the stride in bytes.
func (t Datatype[T]) Hvector(count, blocklength, stride int) Datatype[T] {
	return t.derive("Hvector", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Hvector(count, blocklength, stride, l)
	})
}

// Indexed returns blocks of blocklengths[i] items that begin at displacements[i], in items of t.
func (t Datatype[T]) Indexed(blocklengths, displacements []int) Datatype[T] {
	return t.derive("Indexed", func(l *layout.Layout) (*layout.Layout, error) {
		return core.Indexed(blocklengths, displacements, l)
	})
}

// Hindexed is Indexed with the displacements in bytes.
func (t Datatype[T]) Hindexed(blocklengths, displacements []int) Datatype[T] {
	return t.derive("Hindexed", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Hindexed(blocklengths, displacements, l)
	})
}

// IndexedBlock is Indexed with blocks of equal length.
func (t Datatype[T]) IndexedBlock(blocklength int, displacements []int) Datatype[T] {
	return t.derive("IndexedBlock", func(l *layout.Layout) (*layout.Layout, error) {
		return core.IndexedBlock(blocklength, displacements, l)
	})
}

// HindexedBlock is IndexedBlock with the displacements in bytes.
func (t Datatype[T]) HindexedBlock(blocklength int, displacements []int) Datatype[T] {
	return t.derive("HindexedBlock", func(l *layout.Layout) (*layout.Layout, error) {
		return core.HindexedBlock(blocklength, displacements, l)
	})
}

// Subarray returns a part of a multidimensional array of items: in dimension i, subsizes[i] of the
// sizes[i] items, beginning at starts[i]. Items of the last dimension are adjacent, as in Go and C;
// for Fortran's order, reverse the three slices. The extent is the extent of the whole array.
func (t Datatype[T]) Subarray(sizes, subsizes, starts []int) Datatype[T] {
	return t.derive("Subarray", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Subarray(sizes, subsizes, starts, l)
	})
}

// Resized returns t with the given lower bound and extent, in bytes, which determine the positions
// of consecutive items. The data within an item does not move. extent may be negative: each item then
// lies before the previous one.
//
// If a datatype combines resized datatypes with others, only the resized ones determine its bounds, as
// in MPI. Subarray also counts as resized, and TypeStructOf does not.
func (t Datatype[T]) Resized(lb, extent int) Datatype[T] {
	return t.derive("Resized", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Resized(l, lb, extent)
	})
}

// Size returns the bytes of data in one item of t, without gaps, or 0 if t is invalid.
func (t Datatype[T]) Size() int { return t.layout().Size() }

// Extent returns the lower bound of t and its extent, the distance from one item to the next, in
// bytes.
func (t Datatype[T]) Extent() (lb, extent int) { return t.layout().LB(), t.layout().Extent() }

// TrueExtent returns the offset of the first byte of data, and the distance from there to the end of
// the last byte, in bytes. Resized does not change these values.
func (t Datatype[T]) TrueExtent() (lb, extent int) {
	return t.layout().TrueLB(), t.layout().TrueExtent()
}

// Count returns the number of items of t in the message of s, or Undefined if the message is not a
// whole number of items.
func (t Datatype[T]) Count(s Status) int { return core.Status(s).Count(t.layout()) }

// Elements returns the number of basic elements in the message of s, even if the message fills the
// last item of t only in part (MPI_Get_elements). It returns Undefined if the message ends within an
// element.
func (t Datatype[T]) Elements(s Status) int { return core.Status(s).Elements(t.layout()) }

var noLayout = new(layout.Layout)

// layout returns the layout of t, or an empty one if t is invalid.
func (t Datatype[T]) layout() *layout.Layout {
	if t.fault() != nil {
		return noLayout
	}
	return t.of
}

// At returns count items of t in buf, with the origin at buf[offset]. If data would lie outside
// buf, the call that gets the result fails. Use count 0 to send or receive nothing.
func (t Datatype[T]) At(buf []T, offset, count int) Typed {
	if err := t.fault(); err != nil {
		return Typed{buffer: core.Buffer{Type: noLayout}, err: err}
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	x := Typed{buffer: core.Buffer{Memory: memoryOf(buf), Type: t.of, Origin: offset * size, Count: count}}
	if offset < 0 || offset > len(buf) {
		x.err = fault("At", core.Wrap(core.ErrBuffer, fmt.Errorf("offset %d in a buffer of %d elements", offset, len(buf))))
	} else if err := x.buffer.Check(); err != nil {
		x.err = fault("At", err)
	}
	return x
}

// memoryOf returns the bytes of buf. No Datatype[T] exists for a T that contains pointers or whose
// bytes cannot have every value.
func memoryOf[T any](buf []T) []byte {
	if len(buf) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*int(unsafe.Sizeof(buf[0])))
}
