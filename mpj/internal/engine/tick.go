package engine

import (
	"sync"
	"time"
)

// A ticker schedules ticks, one at a time. It needs from the engine the function that processes a
// tick, and the group of goroutines that Close waits for. The engine's mutex guards it.
type ticker struct {
	timer   *time.Timer
	armed   bool
	onTick  func() // clears armed, and calls running.Done
	running *sync.WaitGroup
}

// arm schedules a tick after d, unless one is scheduled.
func (t *ticker) arm(d time.Duration) {
	if t.armed {
		return
	}
	t.armed = true
	t.running.Add(1)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.onTick)
	} else {
		t.timer.Reset(d)
	}
}

// stop cancels a scheduled tick.
func (t *ticker) stop() {
	if t.timer != nil && t.timer.Stop() {
		t.running.Done()
	}
}
