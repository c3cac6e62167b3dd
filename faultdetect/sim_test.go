package faultdetect

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const simPeriod = DefaultPeriod

// A world is a group of detectors over a network, at virtual time.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	now  time.Duration
	todo events

	detectors []*Detector
	start     []time.Duration         // when each received the start message
	drift     []float64               // how much faster a member's clock runs, as a fraction
	crash     []time.Duration         // never when 0
	pauses    map[int][]time.Duration // pairs: from, until; those past are dropped

	loss    float64
	latency time.Duration // up to

	failed  map[[2]int]time.Duration // observer, member: when
	pings   int                      // questions asked
	planned int                      // events so far
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// newWorld makes n members that start aligned, on a network without loss.
func newWorld(t *testing.T, n int, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)),
		start: make([]time.Duration, n), drift: make([]float64, n), crash: make([]time.Duration, n),
		pauses: map[int][]time.Duration{}, failed: map[[2]int]time.Duration{},
		latency: simPeriod / 50,
	}
	for i := range n {
		d, err := New(Config{Members: n, Self: i, Period: simPeriod, Offset: 1000})
		if err != nil {
			t.Fatal(err)
		}
		w.detectors = append(w.detectors, d)
	}
	return w
}

// randomPhases lets members start up to one period apart.
func (w *world) randomPhases() {
	for i := range w.start {
		w.start[i] = time.Duration(w.rng.Int64N(int64(simPeriod)))
	}
}

func (w *world) at(t time.Duration, do func()) {
	w.planned++
	heap.Push(&w.todo, event{at: t, seq: w.planned, do: do})
}

// run lets the world go on until the given time.
func (w *world) run(until time.Duration) {
	if w.now == 0 {
		for i := range w.detectors {
			w.at(w.start[i], func() { w.tick(i, 0) })
		}
	}
	for len(w.todo) > 0 && w.todo[0].at <= until {
		e := heap.Pop(&w.todo).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

func (w *world) crashed(i int) bool { return w.crash[i] != 0 && w.now >= w.crash[i] }

// resume returns when i goes on if it is paused now.
func (w *world) resume(i int) (until time.Duration, paused bool) {
	p := w.pauses[i]
	for len(p) > 0 && p[1] <= w.now {
		p = p[2:]
	}
	w.pauses[i] = p
	if len(p) > 0 && p[0] <= w.now {
		return p[1], true
	}
	return 0, false
}

// tick is i's k-th; like a Go ticker's, ticks that fall into a pause are lost
// but for one.
func (w *world) tick(i, k int) {
	if w.crashed(i) {
		return
	}
	if until, paused := w.resume(i); paused {
		w.at(until, func() { w.tick(i, k) })
		return
	}
	local := time.Duration(float64(w.now-w.start[i]) * (1 + w.drift[i]))
	w.carryOut(i, w.detectors[i].Tick(local))
	quarter := simPeriod / TicksPerPeriod
	k = max(k+1, int((local+time.Microsecond)/quarter)+1)
	next := time.Duration(float64(k) * float64(quarter) / (1 + w.drift[i]))
	w.at(w.start[i]+next+time.Microsecond, func() { w.tick(i, k) })
}

func (w *world) carryOut(i int, out Output) {
	for _, v := range out.Verdicts {
		if v.State == Failed {
			w.failed[[2]int{i, v.Member}] = w.now
		}
	}
	for _, m := range out.Send {
		if m.Kind == Ping {
			w.pings++
		}
		if w.rng.Float64() < w.loss {
			continue
		}
		w.at(w.now+time.Duration(1+w.rng.Int64N(int64(w.latency))), func() { w.deliver(m) })
	}
}

func (w *world) deliver(m Message) {
	if w.crashed(m.To) || w.now < w.start[m.To] {
		return
	}
	if until, paused := w.resume(m.To); paused {
		w.at(until+time.Microsecond, func() { w.deliver(m) }) // read after the tick, to be unkind
		return
	}
	out, err := w.detectors[m.To].Receive(m)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.carryOut(m.To, out)
}

// slowest returns how many periods after its crash the last survivor had
// failed the last crashed member. It fails the test for a survivor that was
// failed and for a crashed member that was not.
func (w *world) slowest() float64 {
	w.t.Helper()
	var worst time.Duration
	for i := range w.detectors {
		for j := range w.detectors {
			if i == j || w.crashed(i) {
				continue
			}
			when, failed := w.failed[[2]int{i, j}]
			if failed != w.crashed(j) {
				w.t.Fatalf("seed %d, n=%d: member %d is failed at %d: %v, want %v", w.seed, len(w.detectors), j, i, failed, w.crashed(j))
			}
			if failed {
				worst = max(worst, when-w.crash[j])
			}
		}
	}
	return float64(worst) / float64(simPeriod)
}

func (w *world) String() string { return fmt.Sprintf("n=%d seed=%d", len(w.detectors), w.seed) }
