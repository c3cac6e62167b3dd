package main

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// overlap measures how much of the time of a transfer is hidden while rank 0
// computes without calling mpj: 1 - (together - computing) / transfer. Rank 1 is in
// a blocking call. The computing takes about three times as long as the transfer.
func overlap(c *mpj.Comm, item plan.Item) (part, seconds float64, err error) {
	o := &overlapping{c: c, buf: plan.Touched[byte](item.Bytes), send: item.Test == plan.OverlapSend}
	transfer, err := o.median(item.Count, 0)
	if err != nil {
		return 0, 0, err
	}
	work := calibrate(3 * transfer)
	o.alone = true
	computing, err := o.median(item.Count, work)
	if err != nil {
		return 0, 0, err
	}
	o.alone = false
	together, err := o.median(item.Count, work)
	return 1 - (together-computing)/transfer, together, err
}

type overlapping struct {
	c     *mpj.Comm
	buf   []byte
	send  bool // rank 0 sends
	alone bool // no transfer
}

// median returns the seconds at rank 0 of a transfer with so much work, the same
// at all ranks.
func (o *overlapping) median(count, work int) (float64, error) {
	times := make([]float64, count)
	for i := range times {
		if err := mpj.Barrier(o.c); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := o.once(work); err != nil {
			return 0, err
		}
		times[i] = time.Since(start).Seconds()
	}
	slices.Sort(times)
	of := []float64{times[count/2]}
	err := mpj.Bcast(o.c, of, 0)
	return of[0], err
}

func (o *overlapping) once(work int) error {
	rank := o.c.Rank()
	if rank > 1 || (rank == 1 && o.alone) {
		return nil
	}
	start := mpj.Irecv[byte]
	if o.send == (rank == 0) {
		start = mpj.Isend[byte]
	}
	var request *mpj.Request // nil counts as complete
	if !o.alone {
		var err error
		if request, err = start(o.c, o.buf, 1-rank, tag); err != nil {
			return err
		}
	}
	if rank == 0 {
		compute(work)
	}
	_, err := request.Wait()
	return err
}

// sink keeps the compiler from leaving compute out.
var sink atomic.Uint64

// compute does so many steps of a calculation that uses no memory.
func compute(steps int) {
	x := sink.Load()
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink.Store(x)
}

// calibrate returns how many steps take so many seconds.
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
