package main

// The axes.
const (
	x = iota
	y
	z
)

// A field contains the values at the points of a box of a grid, and at one layer of points around
// the box. Points along x are adjacent in memory.
type field struct {
	size   [3]int // number of points, including the layer around
	values []float64
	whole  bool // the box is the whole grid, whatever the number of ranks
}

// newField returns a field with the given numbers of points inside.
func newField(inside [3]int, whole bool) *field {
	f := &field{whole: whole}
	points := 1
	for axis, n := range inside {
		f.size[axis] = n + 2
		points *= n + 2
	}
	f.values = make([]float64, points)
	return f
}

// inside returns the numbers of points without the layer around.
func (f *field) inside() [3]int { return [3]int{f.size[x] - 2, f.size[y] - 2, f.size[z] - 2} }

// row returns the points along x with coordinates j and k; coordinate 0 is in the layer.
func (f *field) row(j, k int) []float64 {
	from := f.size[x] * (j + f.size[y]*k)
	return f.values[from : from+f.size[x] : from+f.size[x]]
}

// rows calls do for each row inside.
func (f *field) rows(do func(j, k int)) {
	for k := 1; k < f.size[z]-1; k++ {
		for j := 1; j < f.size[y]-1; j++ {
			do(j, k)
		}
	}
}

// A face is a layer of points across an axis. The faces are exchanged in the order x, y, z. The
// faces across y include the points received across x, and the faces across z include the points
// received across x and y. So the three exchanges fill the whole layer around the box, including
// edges and corners.

// faceLength returns the number of points in a face.
func (f *field) faceLength(axis int) int {
	switch axis {
	case x:
		return (f.size[y] - 2) * (f.size[z] - 2)
	case y:
		return f.size[x] * (f.size[z] - 2)
	}
	return f.size[x] * f.size[y]
}

// copyFace copies the face at a position on the axis to buf or, if toField, from buf.
func (f *field) copyFace(axis, at int, buf []float64, toField bool) {
	if axis == x {
		f.copyColumn(at, buf, toField)
		return
	}
	first, last, run := 1, f.size[z]-1, f.size[x] // contiguous run of memory for each layer across z
	if axis == z {
		first, last, run = at, at+1, f.size[x]*f.size[y]
		at = 0
	}
	for k := first; k < last; k++ {
		from := f.size[x] * (at + f.size[y]*k)
		if part := f.values[from : from+run]; toField {
			copy(part, buf)
		} else {
			copy(buf, part)
		}
		buf = buf[run:]
	}
}

// copyColumn does the same as copyFace for the x axis, where each point of a face is in a different
// row.
func (f *field) copyColumn(at int, buf []float64, toField bool) {
	f.rows(func(j, k int) {
		if p := &f.row(j, k)[at]; toField {
			*p = buf[0]
		} else {
			buf[0] = *p
		}
		buf = buf[1:]
	})
}

// take copies a box of whole, with the layer around it, to f. The first inner point of the box is at
// at.
func (f *field) take(whole *field, at [3]int) {
	for k := range f.size[z] {
		for j := range f.size[y] {
			copy(f.row(j, k), whole.row(at[y]+j, at[z]+k)[at[x]:])
		}
	}
}

// pack returns the points inside f, without the layer.
func (f *field) pack() (packed []float64) {
	f.rows(func(j, k int) { packed = append(packed, f.row(j, k)[1:f.size[x]-1]...) })
	return packed
}

// unpack stores packed, the output of pack for a box of n points, at position at of f.
func (f *field) unpack(packed []float64, at, n [3]int) {
	for k := range n[z] {
		for j := range n[y] {
			copy(f.row(at[y]+j+1, at[z]+k+1)[at[x]+1:], packed[:n[x]])
			packed = packed[n[x]:]
		}
	}
}
