package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
)

// seed is the seed of EP; the other kernels use npb.Seed.
const seed npb.Random = 271828183

// A batch is 2^16 pairs of numbers (MK in NPB). Each batch can be computed without the previous
// batches.
const (
	batchBits   = 16
	batchPairs  = 1 << batchBits
	annuliCount = 10 // NQ in NPB
)

// sums contains the sums of the Gaussian deviates of some pairs.
type sums struct{ x, y float64 }

// annuli counts accepted pairs by the whole part of max(|x|, |y|).
type annuli [annuliCount]int64

// pairs returns the number of accepted pairs.
func (q *annuli) pairs() int64 {
	var n int64
	for _, c := range q {
		n += c
	}
	return n
}

// batch generates the k-th batch of uniform pairs in the square (-1, 1) x (-1, 1). It turns them
// into Gaussian pairs by Marsaglia's polar method, which rejects the pairs outside the unit circle.
// It counts the accepted pairs in q and returns their sums.
//
// The conversions to float64 prevent the fusion of a product and a sum into one instruction.
// Processors with that instruction would round differently from others.
func batch(k int, q *annuli) sums {
	var s sums
	random := seed.Skip(uint64(k) * 2 * batchPairs)
	for range batchPairs {
		var x, y float64
		random, x = random.Next()
		random, y = random.Next()
		x, y = float64(2*x)-1, float64(2*y)-1 // exact
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
