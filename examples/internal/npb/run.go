package npb

import (
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A Run is one execution of a kernel at one rank.
type Run struct {
	World    *mpj.World // nil for -sequential
	Class    string
	Progress io.Writer // standard error at rank 0, discarded at other ranks

	clock clock
}

// Rank returns the rank of this process, or 0 without a world.
func (r *Run) Rank() int {
	if r.World == nil {
		return 0
	}
	return r.World.Rank()
}

// Size returns the number of ranks, or 1 without a world.
func (r *Run) Size() int {
	if r.World == nil {
		return 1
	}
	return r.World.Size()
}

// PowerOfTwo returns an error unless the number of ranks is a power of two and at most limit.
func (r *Run) PowerOfTwo(limit int) error {
	if n := r.Size(); bits.OnesCount(uint(n)) != 1 || n > limit {
		return fmt.Errorf("%w: class %s needs a power of two as the number of ranks, at most %d, not %d", ErrUsage, r.Class, limit, n)
	}
	return nil
}

// Start starts the reported time at all ranks at the same time.
func (r *Run) Start() error {
	if r.World != nil {
		if err := mpj.Barrier(r.World.Comm); err != nil {
			return err
		}
	}
	r.clock.communication = 0
	r.clock.start = r.clock.now()
	return nil
}

// Stop ends the reported time. All ranks must call it; the longest time of any rank counts.
func (r *Run) Stop() error {
	r.clock.seconds = r.clock.now() - r.clock.start
	if r.World == nil {
		return nil
	}
	t := []float64{r.clock.seconds, r.clock.communication, r.clock.seconds - r.clock.communication}
	if err := mpj.Reduce(r.World.Comm, t, t, mpj.Max, 0); err != nil {
		return err
	}
	r.clock.seconds, r.clock.communication, r.clock.computing = t[0], t[1], t[2]
	return nil
}

// Communicate calls f, which sends and receives. With -times, it adds the duration of f to the
// communication time. With a nil Run, it only calls f.
func (r *Run) Communicate(f func() error) error {
	if r == nil || !r.clock.times {
		return f()
	}
	from := r.clock.now()
	err := f()
	r.clock.communication += r.clock.now() - from
	return err
}

// A clock measures times in seconds.
type clock struct {
	now   func() float64
	times bool // measure communication separately

	start                             float64
	seconds, communication, computing float64
}

// newClock returns the clock of world, which is the same at all replicas.
func newClock(world *mpj.World, times bool) clock {
	if world != nil {
		return clock{now: world.Wtime, times: times}
	}
	begin := time.Now()
	return clock{now: func() float64 { return time.Since(begin).Seconds() }, times: times}
}
