package main

import (
	"runtime"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// timed returns how many seconds n operations took at the rank that needed
// longest. They begin together.
func timed(c *mpj.Comm, n int, op func(i int) error) (float64, error) {
	if err := mpj.Barrier(c); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range n {
		if err := op(i); err != nil {
			return 0, err
		}
	}
	return longest(c, time.Since(start).Seconds())
}

// longest is the greatest of all ranks' seconds.
func longest(c *mpj.Comm, seconds float64) (float64, error) {
	of := []float64{seconds}
	err := mpj.Allreduce(c, of, of, mpj.Max)
	return of[0], err
}

// heapCount counts the heap allocations of this process.
type heapCount struct{ before uint64 }

func startCount() heapCount { return heapCount{mallocs()} }

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// perMessage returns how many allocations a message of the latency test cost, in
// sender and receiver together: of count there and back, and a tenth more to warm
// up.
func (h heapCount) perMessage(c *mpj.Comm, count int) (*float64, error) {
	sum := []float64{float64(mallocs() - h.before)}
	err := mpj.Allreduce(c, sum, sum, mpj.Sum)
	messages := 2 * float64(count+count/10+1) * float64(c.Size()/2)
	perMessage := sum[0] / messages
	return &perMessage, err
}
