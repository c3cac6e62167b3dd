package core

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// With checks, each rank tests before a reduction whether the reduction may split its vector
// between the items of the operation. The rank applies the operation to copies of its vector, as a
// whole and in two parts:
//
//	whole   |a0 a1 a2 a3 a4 a5|
//	parts   |a0|a1 a2 a3 a4 a5|    the first item, and the other items
//
// The results differ for an operation on larger items, such as a multiplication of 2×2 matrices that
// claims items of one element, because the second part begins within an item.

// checkDivisible returns an error unless r may combine the items of b separately.
func checkDivisible(c *Comm, r collective.Reduction, b []byte) error {
	if why := indivisible(r, b); why != "" {
		return c.Failf(ErrOp, "the operation combines items of more than %d bytes, which reductions may split: use Items or OpOf: %s", r.Size, why)
	}
	return nil
}

// indivisible returns how combining b with itself in two parts differs from combining b as a whole,
// or "". It returns "" also for an operation that panics or gives different results for the same
// vectors, because such an operation cannot be judged.
func indivisible(r collective.Reduction, b []byte) string {
	if len(b) <= r.Size {
		return ""
	}
	whole, failed := combinedAt(r, b, 0)
	if failed != nil {
		return ""
	}
	parts, failed := combinedAt(r, b, r.Size)
	if failed != nil {
		return fmt.Sprintf("it panics on a part of the vector: %v", failed)
	}
	if bytes.Equal(whole, parts) {
		return ""
	}
	if again, failed := combinedAt(r, b, 0); failed != nil || !bytes.Equal(whole, again) {
		return ""
	}
	return "its results on two parts of the vector differ from its result on the whole vector"
}

// combinedAt returns the combination of b with itself, in two parts that are split at byte middle. It
// returns the value with which the operation panics, if it does.
func combinedAt(r collective.Reduction, b []byte, middle int) (result []byte, failed any) {
	defer func() { failed = recover() }()
	in, inout := slices.Clone(b), slices.Clone(b)
	if middle > 0 {
		r.Combine(in[:middle], inout[:middle])
	}
	r.Combine(in[middle:], inout[middle:])
	return inout, nil
}
