package main

import (
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// timed returns the seconds that n operations took at the slowest rank. All ranks begin together.
func timed(c, aside *mpj.Comm, n int, op func(i int) error) (float64, error) {
	if err := mpj.Barrier(c); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range n {
		if err := op(i); err != nil {
			return 0, err
		}
	}
	return longest(aside, time.Since(start).Seconds())
}

// longest returns the maximum of all ranks' seconds.
func longest(c *mpj.Comm, seconds float64) (float64, error) {
	of := []float64{seconds}
	err := mpj.Allreduce(c, of, of, mpj.Max)
	return of[0], err
}

// allocations returns the number of heap allocations per operation of all ranks together, over n operations. It
// excludes allocations of the measurement itself.
func allocations(c, aside *mpj.Comm, n int, op func(i int) error) (float64, error) {
	if err := mpj.Barrier(c); err != nil {
		return 0, err
	}
	i := -1
	mine, err := plan.Allocations(n, func() error {
		i++
		return op(i)
	})
	if err != nil {
		return 0, err
	}
	sum := []float64{mine}
	err = mpj.Allreduce(aside, sum, sum, mpj.Sum)
	return sum[0], err
}
