package layout

import "fmt"

// maxSegments bounds the memory of one layout to 2 GiB.
const maxSegments = 1 << 26

// A segment consists of count runs of length bytes, whose beginnings are stride bytes apart.
type segment struct {
	offset, length, count, stride int
}

// appendSegment appends s, or merges it with the last segment. It merges only neighbours in the
// order of the type map.
func appendSegment(list []segment, s segment) []segment {
	if s.count > 1 && s.stride == s.length {
		s = segment{offset: s.offset, length: s.length * s.count, count: 1}
	}
	if len(list) == 0 {
		return append(list, s)
	}
	last := &list[len(list)-1]
	switch {
	case last.count == 1 && s.count == 1 && last.offset+last.length == s.offset:
		last.length += s.length
	case last.length == s.length && last.joins(s):
		if last.count == 1 {
			last.stride = s.offset - last.offset
		}
		last.count += s.count
	default:
		return append(list, s)
	}
	return list
}

// joins reports whether next, whose runs have the same length, continues s.
func (s *segment) joins(next segment) bool {
	step := next.offset - (s.offset + (s.count-1)*s.stride) // distance from the last run to the next
	return (s.count == 1 || s.stride == step) && (next.count == 1 || next.stride == step)
}

// repeat returns n items of l, stride bytes apart. n is not negative.
func (l *Layout) repeat(n, stride int) (*Layout, error) {
	if n == 1 {
		return l, nil
	}
	b := builder{Layout: Layout{align: l.align, signature: l.signature}}
	if err := b.strided(n, 0, stride, l); err != nil {
		return nil, err
	}
	return b.layout(), nil
}

// A builder builds a layout from pieces.
type builder struct {
	Layout
	filled bool // bounds are set
	data   bool // true bounds are set
}

// add adds n consecutive items of t, starting at displacement.
func (b *builder) add(n, displacement int, t *Layout) error {
	if n < 0 {
		return fmt.Errorf("%d items", n)
	}
	return b.strided(n, displacement, t.Extent(), t)
}

// strided adds n items of t that are stride bytes apart.
func (b *builder) strided(n, displacement, stride int, t *Layout) error {
	if n == 0 {
		return nil
	}
	if !within(displacement) {
		return errTooLarge
	}
	span, err := product(n-1, stride)
	if err != nil {
		return err
	}
	size, err := product(n, t.size)
	if err != nil {
		return err
	}
	if b.size += size; b.size > limit {
		return errTooLarge
	}
	if err := b.widen(displacement+min(0, span), displacement+max(0, span), t); err != nil {
		return err
	}
	return b.repeatSegments(n, displacement, stride, t)
}

// widen extends the bounds by items of t at offsets first to last. Once an item has marked bounds, only
// such items count.
func (b *builder) widen(first, last int, t *Layout) error {
	lb, ub := first+t.lb, last+t.ub
	switch {
	case b.marked && !t.marked:
		lb, ub = b.lb, b.ub
	case b.filled && b.marked == t.marked:
		lb, ub = min(lb, b.lb), max(ub, b.ub)
	}
	b.lb, b.ub, b.filled, b.marked = lb, ub, true, b.marked || t.marked
	if t.size > 0 {
		low, high := first+t.low, last+t.high
		if b.data {
			low, high = min(low, b.low), max(high, b.high)
		}
		b.low, b.high, b.data = low, high, true
	}
	if !within(b.lb) || !within(b.ub) || !within(b.low) || !within(b.high) {
		return errTooLarge
	}
	return nil
}

func (b *builder) repeatSegments(n, displacement, stride int, t *Layout) error {
	if len(t.segments) == 1 {
		if s := t.segments[0]; s.count == 1 {
			b.segments = appendSegment(b.segments, segment{s.offset + displacement, s.length, n, stride})
			return nil
		}
	}
	if t.size == 0 {
		return nil
	}
	for i := range n {
		for _, s := range t.segments {
			s.offset += displacement + i*stride
			b.segments = appendSegment(b.segments, s)
		}
		if len(b.segments) > maxSegments {
			return fmt.Errorf("the datatype has more than %d separate runs", maxSegments)
		}
	}
	return nil
}

func (b *builder) layout() *Layout {
	l := b.Layout
	return &l
}
