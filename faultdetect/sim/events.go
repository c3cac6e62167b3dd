package sim

import (
	"container/heap"
	"time"
)

// An event is an action at a point in time.
type event struct {
	at  time.Duration
	seq int // orders events of the same time by when they were scheduled
	do  func()
}

// agenda is a heap of events, earliest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }

func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = event{} // releases its references
	*a = (*a)[:len(*a)-1]
	return last
}

// At schedules do for time t.
func (w *World) At(t time.Duration, do func()) {
	w.planned++
	heap.Push(&w.todo, event{at: t, seq: w.planned, do: do})
}

// Run processes all events up to the given time.
func (w *World) Run(until time.Duration) {
	if w.Now == 0 {
		for i := range w.Detectors {
			w.At(w.Start[i], func() { w.tick(i, 0) })
		}
	}
	for len(w.todo) > 0 && w.todo[0].at <= until {
		e := heap.Pop(&w.todo).(event)
		w.Now = e.at
		e.do()
	}
	w.Now = until
}
