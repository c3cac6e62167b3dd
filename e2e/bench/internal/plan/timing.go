package plan

import (
	"runtime"
	"slices"
)

// batches is the number of batches into which the operations of an item are divided.
const batches = 5

// Median warms up, calls batch for each batch of operations, and returns the seconds per operation
// in the median batch. batch returns the seconds that its n operations took; all ranks of a
// contender call it with the same n.
func Median(count int, batch func(n int) (float64, error)) (float64, error) {
	if _, err := batch(count/10 + 1); err != nil {
		return 0, err
	}
	batches := min(batches, count)
	n := count / batches
	times := make([]float64, batches)
	for i := range times {
		seconds, err := batch(n)
		if err != nil {
			return 0, err
		}
		times[i] = seconds / float64(n)
	}
	slices.Sort(times)
	return times[batches/2], nil
}

// AllocationLimit is the longest message, in bytes, whose allocations are counted.
const AllocationLimit = 64 << 10

// Allocations returns the number of heap allocations of this process per operation, over n
// operations.
func Allocations(n int, op func() error) (float64, error) {
	before := mallocs()
	for range n {
		if err := op(); err != nil {
			return 0, err
		}
	}
	return float64(mallocs()-before) / float64(n), nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
