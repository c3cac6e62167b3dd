package mpj

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Datatype says which parts of a []T are data and in which order, as MPI's
// derived datatypes do: a column of a matrix, some fields of a struct. At joins
// one with a slice, and SendTyped and its kin take the result.
//
//	column := mpj.TypeOf[float64]().Vector(rows, 1, columns)
//	err := mpj.SendTyped(comm, column.At(matrix, 3, 1), right, 0)
//
// Datatypes are immutable values. They are flattened when they are made, so
// there is nothing to commit or free. One made of wrong arguments is wrong
// itself: Err says why, and so does every use.
//
// A message has no gaps and does not say how its data lay in memory: what one
// datatype sends, any other with the same sequence of elements receives, and so does
// Recv into a slice.
type Datatype[T any] struct {
	of  *layout.Layout // nil in the zero Datatype, and when err is set
	err *Error
}

// TypeOf returns the datatype of one element of type T.
func TypeOf[T Element]() Datatype[T] {
	return Datatype[T]{of: layout.Basic(sizeOf[T]())}
}

// Err says what is wrong with t, or nil.
func (t Datatype[T]) Err() error {
	if err := t.fault(); err != nil {
		return err
	}
	return nil
}

func (t Datatype[T]) fault() *Error {
	if t.err == nil && t.of == nil {
		return fault(ErrType, "Datatype", errors.New("the zero Datatype is none: begin with TypeOf"))
	}
	return t.err
}

// made returns what a constructor has made.
func made[T any](op string, l *layout.Layout, err error) Datatype[T] {
	if err != nil {
		return Datatype[T]{err: fault(ErrType, op, err)}
	}
	return Datatype[T]{of: l}
}

// derive makes a datatype from t, if t is one.
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

// Vector returns count blocks of blocklength items each; stride is the
// distance between their beginnings in items of t.
func (t Datatype[T]) Vector(count, blocklength, stride int) Datatype[T] {
	return t.derive("Vector", func(l *layout.Layout) (*layout.Layout, error) {
		step, err := bytesFor(stride, l)
		if err != nil {
			return nil, err
		}
		return layout.Hvector(count, blocklength, step, l)
	})
}

// Hvector is Vector with the stride in bytes.
func (t Datatype[T]) Hvector(count, blocklength, stride int) Datatype[T] {
	return t.derive("Hvector", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Hvector(count, blocklength, stride, l)
	})
}

// Indexed returns blocks of blocklengths[i] items that begin at displacements[i],
// in items of t.
func (t Datatype[T]) Indexed(blocklengths, displacements []int) Datatype[T] {
	return t.derive("Indexed", func(l *layout.Layout) (*layout.Layout, error) {
		return indexed(blocklengths, displacements, l)
	})
}

// Hindexed is Indexed with the displacements in bytes.
func (t Datatype[T]) Hindexed(blocklengths, displacements []int) Datatype[T] {
	return t.derive("Hindexed", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Hindexed(blocklengths, displacements, l)
	})
}

// IndexedBlock is Indexed with blocks of one length.
func (t Datatype[T]) IndexedBlock(blocklength int, displacements []int) Datatype[T] {
	return t.derive("IndexedBlock", func(l *layout.Layout) (*layout.Layout, error) {
		return indexed(filled(len(displacements), blocklength), displacements, l)
	})
}

// HindexedBlock is IndexedBlock with the displacements in bytes.
func (t Datatype[T]) HindexedBlock(blocklength int, displacements []int) Datatype[T] {
	return t.derive("HindexedBlock", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Hindexed(filled(len(displacements), blocklength), displacements, l)
	})
}

// Subarray returns the part of an array of items that has subsizes[i] of the
// sizes[i] items of dimension i, from starts[i] on. The last dimension is the one
// whose items lie next to each other, as in Go and C; for Fortran's order turn
// the three slices around. The extent is that of the whole array.
func (t Datatype[T]) Subarray(sizes, subsizes, starts []int) Datatype[T] {
	return t.derive("Subarray", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Subarray(sizes, subsizes, starts, l)
	})
}

// Resized returns t with another lower bound and extent, in bytes: where items
// that follow each other begin. The data stay where they are.
func (t Datatype[T]) Resized(lb, extent int) Datatype[T] {
	return t.derive("Resized", func(l *layout.Layout) (*layout.Layout, error) {
		return layout.Resized(l, lb, extent)
	})
}

func indexed(blocklengths, displacements []int, l *layout.Layout) (*layout.Layout, error) {
	bytes := make([]int, len(displacements))
	for i, d := range displacements {
		var err error
		if bytes[i], err = bytesFor(d, l); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return layout.Hindexed(blocklengths, bytes, l)
}

// bytesFor returns how many bytes n extents of l are.
func bytesFor(n int, l *layout.Layout) (int, error) {
	bytes := n * l.Extent()
	if l.Extent() != 0 && bytes/l.Extent() != n {
		return 0, fmt.Errorf("%d items of %d bytes", n, l.Extent())
	}
	return bytes, nil
}

func filled(n, value int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = value
	}
	return s
}

// Size returns the bytes of data in one item of t, gaps not counted; 0 when t
// is wrong.
func (t Datatype[T]) Size() int { return t.layout().Size() }

// Extent returns the lower bound of t and its extent, the distance from one
// item to the next, in bytes.
func (t Datatype[T]) Extent() (lb, extent int) { return t.layout().LB(), t.layout().Extent() }

// TrueExtent returns the offset of the first byte of data and the distance to
// the end of the last one, whatever Resized has said.
func (t Datatype[T]) TrueExtent() (lb, extent int) {
	return t.layout().TrueLB(), t.layout().TrueExtent()
}

// Count returns how many items of t the message of s is, or Undefined when it
// is no whole number of them.
func (t Datatype[T]) Count(s Status) int { return orUndefined(t.layout().Count(s.Size)) }

// Elements returns how many basic elements the message of s has, also when it
// fills the last item of t only in part (MPI_Get_elements), or Undefined when
// it ends within an element.
func (t Datatype[T]) Elements(s Status) int { return orUndefined(t.layout().Elements(s.Size)) }

func orUndefined(n int, ok bool) int {
	if !ok {
		return Undefined
	}
	return n
}

var noLayout = new(layout.Layout)

// layout returns the layout of t, one without data when t is wrong.
func (t Datatype[T]) layout() *layout.Layout {
	if t.fault() != nil {
		return noLayout
	}
	return t.of
}

// At returns count items of t in buf, whose origin is buf[offset]. Data that
// would lie outside of buf are an error of the call that gets the result. To
// send or receive nothing, count is 0.
func (t Datatype[T]) At(buf []T, offset, count int) Typed {
	if err := t.fault(); err != nil {
		return Typed{of: noLayout, err: err}
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	x := Typed{of: t.of, count: count, origin: offset * size, memory: memoryOf(buf)}
	if offset < 0 || offset > len(buf) {
		x.err = fault(ErrBuffer, "At", fmt.Errorf("offset %d of %d elements", offset, len(buf)))
	} else if err := x.of.Check(x.origin, count, len(x.memory)); err != nil {
		x.err = fault(ErrBuffer, "At", err)
	}
	return x
}

// memoryOf returns the bytes of buf. No Datatype[T] exists of a T with
// pointers, or with bytes that cannot have every value.
func memoryOf[T any](buf []T) []byte {
	if len(buf) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*int(unsafe.Sizeof(buf[0])))
}
