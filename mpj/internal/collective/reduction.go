package collective

// A Reduction is an operation that combines two vectors of items. An item consists of one or more
// elements. Algorithms split vectors only between items.
type Reduction struct {
	Size int // size of an item, in bytes; at least 1
	// Combine computes inout = in op inout, where in comes from lower ranks. It must be
	// associative. It is called on one or more items.
	Combine func(in, inout []byte)
}

// combine calls Combine, unless the vectors are empty.
func (r Reduction) combine(in, inout []byte) {
	if len(in) > 0 {
		r.Combine(in, inout)
	}
}

// An accumulator contains this rank's partial result of a reduction, and a buffer for incoming data.
// The two are swapped when a combined result is in the buffer. An accumulator does not contain the
// Reduction, which therefore stays on the stack.
type accumulator struct{ mine, other []byte }

// take combines bytes from..to of mine with those of other, which come from lower ranks if below is
// true.
func (a *accumulator) take(r Reduction, from, to int, below bool) {
	if below {
		r.combine(a.other[from:to], a.mine[from:to])
		return
	}
	r.combine(a.mine[from:to], a.other[from:to])
	a.mine, a.other = a.other, a.mine
}

// fold combines the n vectors of size bytes in b along the tree of doc.go, and returns the result,
// which is in b.
func (r Reduction) fold(b []byte, n, size int) []byte {
	at := func(i int) []byte { return b[i*size : (i+1)*size] }
	for bit := 1; bit < n; bit *= 2 {
		for i := 0; i+bit < n; i += 2 * bit { // the result of a node is stored at its last rank
			r.combine(at(i+bit-1), at(min(i+2*bit, n)-1))
		}
	}
	return at(n - 1)
}
