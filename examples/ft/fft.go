package main

import (
	"math"
	"math/bits"
	"math/cmplx"
)

// width is the number of lines that are transformed side by side. They are adjacent in memory: 8
// lines with 16 bytes per element, so that every access uses two full cache lines. The lines and
// their scratch space fit in the cache.
const width = 8

// A transform is the discrete Fourier transform of lines of one length, a power of two. It computes
// the sum over j of v[j] e^(sign 2 pi i j k / n), without a factor.
type transform struct {
	n       int
	roots   [2][]complex128 // e^(-2 pi i k / n) for k < n/2, and their conjugates
	scratch [2][]complex128 // width lines side by side
}

// The directions of a transform.
const (
	forward = iota // to frequencies, sign -1
	backward
)

func newTransform(n int) *transform {
	t := &transform{n: n}
	for k := range n / 2 {
		root := cmplx.Rect(1, -2*math.Pi*float64(k)/float64(n))
		t.roots[forward] = append(t.roots[forward], root)
		t.roots[backward] = append(t.roots[backward], cmplx.Conj(root))
	}
	for i := range t.scratch {
		t.scratch[i] = make([]complex128, n*width)
	}
	return t
}

// strided transforms count lines in place. The elements of a line are stride apart, and the first
// elements of the lines are adjacent, beginning at data[0]. count must be a multiple of width.
func (t *transform) strided(data []complex128, stride, count, direction int) {
	for from := 0; from < count; from += width {
		in := t.scratch[0]
		for j := range t.n {
			copy(in[j*width:(j+1)*width], data[from+j*stride:])
		}
		out := t.lines(direction)
		for j := range t.n {
			copy(data[from+j*stride:][:width], out[j*width:(j+1)*width])
		}
	}
}

// contiguous transforms count consecutive lines in place. count must be a multiple of width.
func (t *transform) contiguous(data []complex128, count, direction int) {
	for ; count > 0; count -= width {
		in := t.scratch[0]
		for l := range width {
			for j, v := range data[l*t.n : (l+1)*t.n] {
				in[j*width+l] = v
			}
		}
		out := t.lines(direction)
		for l := range width {
			line := data[l*t.n : (l+1)*t.n]
			for j := range line {
				line[j] = out[j*width+l]
			}
		}
		data = data[width*t.n:]
	}
}

// lines transforms the lines in scratch[0] and returns the scratch buffer that contains the result.
// It uses Stockham's method, which needs no reordering: each pass turns lines of n elements into
// four times as many lines of n/4 elements, side by side.
func (t *transform) lines(direction int) []complex128 {
	in, out := t.scratch[0], t.scratch[1]
	n := t.n
	if bits.TrailingZeros(uint(n))%2 == 1 {
		radix2(in, out, t.roots[direction])
		in, out = out, in
		n /= 2
	}
	for ; n > 1; n /= 4 {
		t.radix4(in, out, n, direction)
		in, out = out, in
	}
	return in
}

// radix2 is a pass that turns lines into twice as many lines of half the length.
func radix2(in, out, roots []complex128) {
	half := len(in) / 2
	for p, w := range roots {
		a, b := in[p*width:][:width], in[p*width+half:][:width]
		sum, difference := out[2*p*width:][:width], out[(2*p+1)*width:][:width]
		for i := range a {
			sum[i] = a[i] + b[i]
			difference[i] = w * (a[i] - b[i])
		}
	}
}

// radix4 is a pass that turns lines of n elements into four times as many lines of n/4 elements.
func (t *transform) radix4(in, out []complex128, n, direction int) {
	lines := len(in) / n
	quarter := len(in) / 4
	for p := range n / 4 {
		from := in[p*lines:]
		a, b, c, d := from[:lines], from[quarter:][:lines], from[2*quarter:][:lines], from[3*quarter:][:lines]
		if direction == backward {
			b, d = d, b
		}
		to := out[4*p*lines:][:4*lines]
		if p == 0 {
			butterfly(a, b, c, d, to)
			continue
		}
		w := t.roots[direction][p*(t.n/n)]
		twistedButterfly(a, b, c, d, to, w, t.roots[direction][2*p*(t.n/n)])
	}
}

// butterfly transforms many groups of four elements. The four parts of out are adjacent.
func butterfly(a, b, c, d, out []complex128) {
	n := len(a)
	b, c, d = b[:n], c[:n], d[:n]
	out0, out1, out2, out3 := out[:n], out[n:][:n], out[2*n:][:n], out[3*n:][:n]
	for i := range a {
		even, odd := a[i]+c[i], a[i]-c[i]
		sum, difference := b[i]+d[i], b[i]-d[i]
		turned := complex(imag(difference), -real(difference)) // multiplied by -i
		out0[i] = even + sum
		out1[i] = odd + turned
		out2[i] = even - sum
		out3[i] = odd - turned
	}
}

// twistedButterfly is like butterfly, but multiplies the results by 1, w, w2 = w^2 and w^3.
func twistedButterfly(a, b, c, d, out []complex128, w, w2 complex128) {
	n := len(a)
	b, c, d = b[:n], c[:n], d[:n]
	out0, out1, out2, out3 := out[:n], out[n:][:n], out[2*n:][:n], out[3*n:][:n]
	w3 := w * w2
	for i := range a {
		even, odd := a[i]+c[i], a[i]-c[i]
		sum, difference := b[i]+d[i], b[i]-d[i]
		turned := complex(imag(difference), -real(difference))
		out0[i] = even + sum
		out1[i] = w * (odd + turned)
		out2[i] = w2 * (even - sum)
		out3[i] = w3 * (odd - turned)
	}
}
