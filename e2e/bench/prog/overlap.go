package main

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// overlap measures which share of the time of a transfer is hidden while rank 0 computes without calling mpj: 1
// - (together - computing) / transfer. Rank 1 is in a blocking call. The computation takes about three times as
// long as the transfer. The three measurements alternate, so that a change of the processor's speed affects all
// of them. The result is computed from their medians at rank 0.
func overlap(c *mpj.Comm, item plan.Item) (part, seconds float64, err error) {
	o := &overlapping{c: c, buf: plan.Touched[byte](item.Bytes), send: item.Test == plan.OverlapSend}
	warm := make([]float64, item.Count)
	for i := range warm {
		if warm[i], err = o.timed(true, 0); err != nil {
			return 0, 0, err
		}
	}
	work := calibrate(3 * median(warm))
	var transfer, computing, together []float64
	for range item.Count {
		for _, turn := range []struct {
			times    *[]float64
			transfer bool
			work     int
		}{{&transfer, true, 0}, {&computing, false, work}, {&together, true, work}} {
			t, err := o.timed(turn.transfer, turn.work)
			if err != nil {
				return 0, 0, err
			}
			*turn.times = append(*turn.times, t)
		}
	}
	both := median(together)
	return 1 - (both-median(computing))/median(transfer), both, nil
}

func median(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)/2]
}

type overlapping struct {
	c    *mpj.Comm
	buf  []byte
	send bool // rank 0 sends
}

// timed returns the seconds that this rank needs for some work at rank 0, with or without a transfer. All ranks
// begin together.
func (o *overlapping) timed(transfer bool, work int) (float64, error) {
	if err := mpj.Barrier(o.c); err != nil {
		return 0, err
	}
	begin := time.Now()
	rank := o.c.Rank()
	start := mpj.Irecv[byte]
	if o.send == (rank == 0) {
		start = mpj.Isend[byte]
	}
	var request *mpj.Request // a nil request counts as complete
	if transfer && rank < 2 {
		var err error
		if request, err = start(o.c, o.buf, 1-rank, tag); err != nil {
			return 0, err
		}
	}
	if rank == 0 {
		compute(work)
	}
	_, err := request.Wait()
	return time.Since(begin).Seconds(), err
}

// sink prevents the compiler from removing compute.
var sink atomic.Uint64

// compute executes a number of steps of a calculation that uses no memory.
func compute(steps int) {
	x := sink.Load()
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink.Store(x)
}

// calibrate returns the number of steps that take the given time.
func calibrate(seconds float64) int {
	const steps = 1 << 22
	best := time.Duration(1 << 62)
	for range 5 {
		start := time.Now()
		compute(steps)
		best = min(best, time.Since(start))
	}
	return int(seconds / best.Seconds() * steps)
}
