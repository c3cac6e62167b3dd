package layout

import (
	"fmt"
	"math/bits"
)

// limit bounds every size, displacement and extent, in bytes. It is the size of an address space,
// and small enough that no sum of two values overflows: 2^47, or 2^29 if an int has 32 bits.
const limit = 1 << limitBits

const limitBits = 11 + 18*(bits.UintSize/32)

// errTooLarge is the error of a datatype that does not fit into memory.
var errTooLarge = fmt.Errorf("the datatype spans more than 2^%d bytes", limitBits)

// A Layout describes one item of a datatype: its bytes relative to an origin, and its extent, which
// is the distance from one item to the next. It is immutable.
type Layout struct {
	segments  []segment
	size      int        // bytes of data
	lb, ub    int        // bounds as in MPI: those of the data, or those set by Resized
	marked    bool       // whether Resized has set the bounds of this layout or of a part
	low, high int        // true bounds: the data are in [low, high)
	align     int        // size of the largest basic type, for the padding of Struct
	signature *signature // counts elements for Elements
}

// Basic returns the layout of an element of size bytes.
func Basic(size int) *Layout {
	return &Layout{
		segments: []segment{{length: size, count: 1}},
		size:     size, ub: size, high: size, align: size,
		signature: &signature{size: size, elements: 1},
	}
}

// Size returns the bytes of data in one item, without gaps.
func (l *Layout) Size() int { return l.size }

// Extent returns the distance in bytes from one item to the next. It may be negative.
func (l *Layout) Extent() int { return l.ub - l.lb }

// LB returns the lower bound in bytes. It may be negative.
func (l *Layout) LB() int { return l.lb }

// TrueLB returns the lowest offset of any byte of data.
func (l *Layout) TrueLB() int { return l.low }

// TrueExtent returns the number of bytes from the first to the last byte of data, both included.
func (l *Layout) TrueExtent() int { return l.high - l.low }

// Contiguous returns count items of t, one after the other.
func Contiguous(count int, t *Layout) (*Layout, error) {
	return Hvector(count, 1, t.Extent(), t)
}

// Hvector returns count blocks of blocklength items of t. The beginnings of consecutive blocks are
// stride bytes apart.
func Hvector(count, blocklength, stride int, t *Layout) (*Layout, error) {
	if count < 0 || blocklength < 0 {
		return nil, fmt.Errorf("negative value: %d blocks of %d items", count, blocklength)
	}
	block, err := t.repeat(blocklength, t.Extent())
	if err != nil {
		return nil, err
	}
	return block.repeat(count, stride)
}

// Hindexed returns blocks of blocklengths[i] items of t at displacements[i], in bytes.
func Hindexed(blocklengths, displacements []int, t *Layout) (*Layout, error) {
	if len(blocklengths) != len(displacements) {
		return nil, fmt.Errorf("%d block lengths and %d displacements", len(blocklengths), len(displacements))
	}
	b := builder{Layout: Layout{align: t.align, signature: t.signature}}
	for i, n := range blocklengths {
		if err := b.add(n, displacements[i], t); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return b.layout(), nil
}

// A Block is a part of a Struct.
type Block struct {
	Length       int // in items
	Displacement int // in bytes
	Type         *Layout
}

// Struct returns a layout of the blocks, one after the other. Its extent is padded so that the next
// item has the same alignment, as for a struct in C or Go. If the bounds of a block were set by
// Resized, it is not padded.
func Struct(blocks []Block) (*Layout, error) {
	b := builder{Layout: Layout{align: 1, signature: new(signature)}}
	for i, block := range blocks {
		if err := b.add(block.Length, block.Displacement, block.Type); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		b.align = max(b.align, block.Type.align)
		b.signature.add(block.Length*block.Type.size, block.Type.signature)
	}
	l := b.layout()
	if over := l.Extent() % l.align; over > 0 && !l.marked {
		l.ub += l.align - over
	}
	return l, nil
}

// Subarray returns a block of an array in row-major order (that of C and Go). The array has the
// given sizes; the block begins at starts and has subsizes items of t in each dimension. Its extent
// is the extent of the whole array.
func Subarray(sizes, subsizes, starts []int, t *Layout) (*Layout, error) {
	if len(sizes) == 0 || len(subsizes) != len(sizes) || len(starts) != len(sizes) {
		return nil, fmt.Errorf("%d sizes, %d subsizes, %d starts", len(sizes), len(subsizes), len(starts))
	}
	whole, origin, block := t.Extent(), 0, t
	for i := len(sizes) - 1; i >= 0; i-- {
		if subsizes[i] < 1 || starts[i] < 0 || starts[i] > sizes[i]-subsizes[i] {
			return nil, fmt.Errorf("dimension %d: subsize %d at start %d does not fit size %d", i, subsizes[i], starts[i], sizes[i])
		}
		var err error
		if block, err = block.repeat(subsizes[i], whole); err != nil {
			return nil, err
		}
		origin += starts[i] * whole // less than the new whole
		if whole, err = product(whole, sizes[i]); err != nil {
			return nil, err
		}
	}
	l, err := Hindexed([]int{1}, []int{origin}, block)
	if err != nil {
		return nil, err
	}
	return Resized(l, 0, whole)
}

// Resized returns t with the given lower bound and extent in bytes. With a negative extent, each
// item lies before the previous one. A layout that is made of several parts has the bounds of those
// parts for which Resized has set them; the other parts do not count. This follows the definition of
// lower and upper bounds in MPI-4 §5.1.6, in which Resized adds markers to the type map.
func Resized(t *Layout, lb, extent int) (*Layout, error) {
	l, err := Padded(t, lb, extent)
	if err == nil {
		l.marked = true
	}
	return l, err
}

// Padded is Resized, but a layout made of the result and of other parts counts all of them.
func Padded(t *Layout, lb, extent int) (*Layout, error) {
	if !within(lb) || !within(extent) || !within(lb+extent) {
		return nil, fmt.Errorf("extent %d with lower bound %d is out of range", extent, lb)
	}
	l := *t
	l.lb, l.ub, l.marked = lb, lb+extent, false
	return &l, nil
}

// within reports whether x is a valid size, displacement or extent.
func within(x int) bool { return -limit <= x && x <= limit }

// product returns a*b, or an error if it exceeds the limit.
func product(a, b int) (int, error) {
	if a != 0 && b != 0 && (a > limit || a < -limit || b > limit/abs(a) || b < -(limit/abs(a))) {
		return 0, errTooLarge
	}
	return a * b, nil
}

func abs(a int) int { return max(a, -a) }
