package main

import (
	"fmt"
	"io"
	"math"
)

// A result is what all ranks have computed together.
type result struct {
	class   class
	ranks   int
	sums    sums
	annuli  annuli
	seconds float64
}

// print writes the report of r. Mop/s are, as in NPB, millions of uniform
// random numbers per second.
func (r result) print(w io.Writer) error {
	verification := "SUCCESSFUL"
	if !r.class.verify(r.sums) {
		verification = "UNSUCCESSFUL"
	}
	text := fmt.Appendf(nil, `
 NAS Parallel Benchmarks - EP Benchmark

 Class        = %s
 Pairs        = %d (2^%d)
 Gaussian     = %d pairs
 Sum of x     = %22.15e
 Sum of y     = %22.15e
 Counts       = pairs with max(|x|, |y|) between
`, r.class.name, 1<<r.class.bits, r.class.bits, r.annuli.pairs(), r.sums.x, r.sums.y)
	for l, count := range r.annuli {
		text = fmt.Appendf(text, "       %2d ..%3d  %12d\n", l, l+1, count)
	}
	mops := math.Ldexp(1, r.class.bits+1) / 1e6 / r.seconds
	text = fmt.Appendf(text, ` Ranks        = %d
 Time         = %.2f seconds
 Mop/s total  = %.2f
 Mop/s/rank   = %.2f
 Verification = %s

`, r.ranks, r.seconds, mops, mops/float64(r.ranks), verification)
	_, err := w.Write(text)
	return err
}
