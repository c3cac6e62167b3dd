package main

import "math"

// The generator x -> a x mod 2^46 of NPB, with its multiplier and seed. The
// product modulo 2^64 has the right low 46 bits, so that one integer
// multiplication is NPB's randlc, to the bit.
const (
	multiplier = 1220703125 // 5^13
	seed       = 271828183
	modulus    = 1 << 46
)

// A batch is 2^16 pairs of numbers (MK in NPB). Any batch can be computed
// without the ones before it.
const (
	batchBits   = 16
	batchPairs  = 1 << batchBits
	annuliCount = 10 // NQ in NPB
)

// sums adds up the Gaussian deviates of some pairs.
type sums struct{ x, y float64 }

// annuli counts accepted pairs by the whole part of max(|x|, |y|).
type annuli [annuliCount]int64

// pairs returns how many pairs were accepted.
func (q *annuli) pairs() int64 {
	var n int64
	for _, c := range q {
		n += c
	}
	return n
}

// power returns a^n modulo 2^46, by squaring.
func power(a, n uint64) uint64 {
	r := uint64(1)
	for ; n > 0; n /= 2 {
		if n&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r % modulus
}

// batch turns the k-th batch of uniform pairs in the square (-1, 1) x (-1, 1)
// into Gaussian ones by Marsaglia's polar method, which rejects the pairs
// outside the unit circle. It counts the others in q and returns their sums.
//
// The conversions to float64 forbid to fuse a product and a sum into one
// instruction: processors that have it would round differently from the others.
func batch(k int, q *annuli) sums {
	var s sums
	state := uint64(seed) * power(multiplier, uint64(k)*2*batchPairs) % modulus
	for range batchPairs {
		var x, y float64
		x, state = next(state)
		y, state = next(state)
		t := float64(x*x) + float64(y*y)
		if t > 1 {
			continue
		}
		f := math.Sqrt(-2 * math.Log(t) / t)
		x, y = float64(x*f), float64(y*f)
		q[max(int(math.Abs(x)), int(math.Abs(y)))]++
		s.x += x
		s.y += y
	}
	return s
}

// next returns the uniform number after state, in (-1, 1), and the new state.
// Nothing in it is rounded.
func next(state uint64) (float64, uint64) {
	state = state * multiplier % modulus
	return float64(int64(state))*0x1p-45 - 1, state
}
