package collective

// A Reduction says how two vectors of elements are combined.
type Reduction struct {
	Size int // bytes of an element
	// Combine makes inout = in op inout, for elements of lower ranks in in. It
	// has to be associative.
	Combine func(in, inout []byte)
}

// An accumulator is what this rank has of a reduction, and memory for what
// comes in. The two change places when the result of combining is in the
// other. (The Reduction is kept apart from what is sent, so that it stays on the
// stack.)
type accumulator struct{ mine, other []byte }

// take combines bytes from..to of mine with those of other, which a rank below
// or above has sent.
func (a *accumulator) take(r Reduction, from, to int, below bool) {
	if below {
		r.Combine(a.other[from:to], a.mine[from:to])
		return
	}
	r.Combine(a.mine[from:to], a.other[from:to])
	a.mine, a.other = a.other, a.mine
}

// fold combines the n vectors of size bytes in b along the tree of doc.go and
// returns the result, which is in b.
func (r Reduction) fold(b []byte, n, size int) []byte {
	at := func(i int) []byte { return b[i*size : (i+1)*size] }
	for bit := 1; bit < n; bit *= 2 {
		for i := 0; i+bit < n; i += 2 * bit { // a node's result is at its last rank
			r.Combine(at(i+bit-1), at(min(i+2*bit, n)-1))
		}
	}
	return at(n - 1)
}
