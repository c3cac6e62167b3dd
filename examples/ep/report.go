package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
)

// fields returns the fields of the report that are specific to EP.
func fields(c class, s sums, q annuli) []npb.Field {
	counts := "pairs with max(|x|, |y|) between"
	for l, count := range q {
		counts += fmt.Sprintf("\n       %2d ..%3d  %12d", l, l+1, count)
	}
	return []npb.Field{
		npb.Fieldf("Pairs", "%d (2^%d)", 1<<c.bits, c.bits),
		npb.Fieldf("Gaussian", "%d pairs", q.pairs()),
		npb.Fieldf("Sum of x", "%22.15e", s.x),
		npb.Fieldf("Sum of y", "%22.15e", s.y),
		{Name: "Counts", Value: counts},
	}
}
