package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

// A Pair is an observer and a member that it judges.
type Pair struct{ Observer, Member int }

// A World is a group of detectors on a network. Its exported fields may be set before Run; durations are
// in the world's time.
type World struct {
	Seed      uint64
	Rand      *rand.Rand
	Now       time.Duration
	Period    time.Duration
	Detectors []*faultdetect.Detector

	Start []time.Duration // when each member received the start message
	Drift []float64       // how much faster a member's clock runs, as a fraction

	Loss    float64                   // share of messages that are lost
	Latency time.Duration             // upper bound of a message's delay
	Cut     func(from, to int) bool   // drops further messages; may be nil
	Watch   func(faultdetect.Message) // called for every message sent; may be nil

	Failed    map[Pair]time.Duration // time of each verdict
	Doubts    int                    // number of suspicions so far
	crash     []time.Duration        // time of each member's crash, or 0
	pauses    map[int][]time.Duration
	connected map[Pair]bool

	todo    agenda
	planned int
}

// New returns n members that start aligned, on a network without loss. It uses the fields of c apart from
// Members, Self and Offset.
func New(n int, c faultdetect.Config, seed uint64) (*World, error) {
	w := &World{
		Seed: seed, Rand: rand.New(rand.NewPCG(seed, 0)), Period: c.Period,
		Start: make([]time.Duration, n), Drift: make([]float64, n), crash: make([]time.Duration, n),
		pauses: map[int][]time.Duration{}, Failed: map[Pair]time.Duration{}, connected: map[Pair]bool{},
		Latency: c.Period / 50,
	}
	for i := range n {
		c.Members, c.Self, c.Offset = n, i, 1000
		d, err := faultdetect.New(c)
		if err != nil {
			return nil, err
		}
		w.Detectors = append(w.Detectors, d)
	}
	return w, nil
}

// RandomPhases makes members start at random times within one period.
func (w *World) RandomPhases() {
	for i := range w.Start {
		w.Start[i] = time.Duration(w.Rand.Int64N(int64(w.Period)))
	}
}

// Crash ends member i at a time; its host becomes silent.
func (w *World) Crash(i int, at time.Duration) { w.crash[i] = at }

// Kill ends member i at a time while its host stays alive: connections to it are reset, and members with
// such a connection are notified.
func (w *World) Kill(i int, at time.Duration) {
	w.Crash(i, at)
	w.At(at, func() {
		for j, d := range w.Detectors {
			if w.connected[Pair{i, j}] || w.connected[Pair{j, i}] {
				w.At(w.Now+w.delay(), func() {
					if !w.crashed(j) {
						w.carryOut(j, d.Report(i))
					}
				})
			}
		}
	})
}

// Silent tells member i, at a time, that member j has been silent for the given time.
func (w *World) Silent(i, j int, at, since time.Duration) {
	w.At(at, func() { w.carryOut(i, w.Detectors[i].Silent(j, since)) })
}

// Pause stops member i for a while. The pauses of a member have to be given in order.
func (w *World) Pause(i int, from, until time.Duration) {
	w.pauses[i] = append(w.pauses[i], from, until)
}

func (w *World) crashed(i int) bool { return w.crash[i] != 0 && w.Now >= w.crash[i] }

// resume returns when i resumes if it is paused now.
func (w *World) resume(i int) (until time.Duration, paused bool) {
	p := w.pauses[i]
	for len(p) > 0 && p[1] <= w.Now {
		p = p[2:]
	}
	w.pauses[i] = p
	if len(p) > 0 && p[0] <= w.Now {
		return p[1], true
	}
	return 0, false
}

// tick runs i's k-th tick. As with a Go ticker, all but one of the ticks during a pause are dropped.
func (w *World) tick(i, k int) {
	if w.crashed(i) {
		return
	}
	if until, paused := w.resume(i); paused {
		w.At(until, func() { w.tick(i, k) })
		return
	}
	local := w.local(i)
	w.carryOut(i, w.Detectors[i].Tick(local))
	step := w.Period / faultdetect.TicksPerPeriod
	k = max(k+1, int((local+time.Microsecond)/step)+1)
	next := time.Duration(float64(k) * float64(step) / (1 + w.Drift[i]))
	w.At(w.Start[i]+next+time.Microsecond, func() { w.tick(i, k) })
}

func (w *World) local(i int) time.Duration {
	return time.Duration(float64(w.Now-w.Start[i]) * (1 + w.Drift[i]))
}

func (w *World) delay() time.Duration {
	return time.Duration(1 + w.Rand.Int64N(int64(w.Latency)))
}

func (w *World) carryOut(i int, out faultdetect.Output) {
	for _, v := range out.Verdicts {
		switch v.State {
		case faultdetect.Failed:
			w.Failed[Pair{i, v.Member}] = w.Now
		case faultdetect.Suspect:
			w.Doubts++
		}
	}
	for _, m := range out.Send {
		w.Send(m)
	}
}

// Send puts a message on the network on behalf of its sender.
func (w *World) Send(m faultdetect.Message) {
	if w.Watch != nil {
		w.Watch(m)
	}
	if w.Loss > 0 && w.Rand.Float64() < w.Loss || w.Cut != nil && w.Cut(m.From, m.To) {
		return
	}
	w.connected[Pair{m.From, m.To}] = true
	w.At(w.Now+w.delay(), func() { w.deliver(m) })
}

func (w *World) deliver(m faultdetect.Message) {
	if w.crashed(m.To) || w.Now < w.Start[m.To] {
		return
	}
	if until, paused := w.resume(m.To); paused {
		w.At(until+time.Microsecond, func() { w.deliver(m) }) // read after the tick: the worst case
		return
	}
	out, err := w.Detectors[m.To].Receive(w.local(m.To), m)
	if err != nil {
		panic(fmt.Sprintf("%v: a detector sent a message that detectors refuse: %v", w, err))
	}
	w.carryOut(m.To, out)
}

// Times returns how long after each crash each survivor failed the crashed member. It returns an error if
// a survivor was failed, or if a survivor does not know of a crash.
func (w *World) Times() (times []time.Duration, err error) {
	for i := range w.Detectors {
		for j := range w.Detectors {
			if i == j || w.crashed(i) {
				continue
			}
			when, failed := w.Failed[Pair{i, j}]
			if failed != w.crashed(j) {
				return nil, fmt.Errorf("%v: member %d is failed at %d: %v, want %v", w, j, i, failed, w.crashed(j))
			}
			if failed {
				times = append(times, when-w.crash[j])
			}
		}
	}
	return times, nil
}

func (w *World) String() string { return fmt.Sprintf("n=%d seed=%d", len(w.Detectors), w.Seed) }
