package engine

import (
	"runtime"
	"time"
)

// A goroutine that waits polls the rings itself. The duration of the polling, and the action between
// two looks, depend on whether each rank has a processor:
//
//	                 at first     after spinTime       in the end
//	enough           looks        yields every time    sleeps, after yieldTime
//	crowded          yields every time                 sleeps, after crowdedTime
//
// In the end, a goroutine that waits for the ring of one rank sleeps at the bell itself (doze). In
// any other wait, the pump takes over and sleeps at the bell.
//
// A yield passes the processor to a rank that has work to do, for a third of the cost of sleeping
// and being woken. It has no effect where the scheduler keeps the ranks in separate groups
// (sched_autogroup, cgroups), or when the other ranks compute; the bell covers those cases. Where
// other programs compute, a yield lasts for their time slices. So after a yield that took slowYield
// or longer, the next slowWaits waits do not yield. They sleep at once if crowded, and otherwise
// after spinTime.
const (
	spinTime    = 30 * time.Microsecond
	yieldTime   = 300 * time.Microsecond
	crowdedTime = 50 * time.Microsecond
	// lockedLooks is the number of first looks, which are made with the engine's mutex held, because
	// a fast answer arrives during them. They delay other goroutines by at most a third of a
	// microsecond.
	lockedLooks = 64
	spinLooks   = 64 // looks between two readings of the clock
	// yieldLooks is the same number when each look is followed by a yield, which may be slow.
	yieldLooks  = 4
	yieldRounds = 32
	slowYield   = time.Millisecond // shorter than a time slice, longer than the looks of many ranks
	slowWaits   = 256              // number of waits without yields after a slow yield
	// allRounds is the interval, in rounds, between looks at rings other than the ring of the
	// awaited rank. Each such look touches a page or two, which a process that has just been
	// scheduled must fetch into its caches.
	allRounds = 8
)

// spin polls the rings until w is woken, or returns false after some time. ring is the inlet that
// the event must arrive on, or nil if that inlet is no ring or is not known. p.mu is held at the
// beginning and the end. The caller calls leave afterwards.
func (p *poller) spin(w *Waiter, ring *inlet) (woken bool) {
	p.rest()
	p.spinning, w.spinning, p.awaited, w.number = true, true, w, 0
	woken = p.pollFor(w, ring)
	p.spinning, w.spinning, p.awaited = false, false, nil
	return woken
}

// pollFor polls the rings until w is woken or the engine stops. It returns false after some time,
// and the pump should then poll instead.
func (p *poller) pollFor(w *Waiter, ring *inlet) bool {
	limit := yieldTime
	if p.crowded {
		limit = crowdedTime
	}
	var start time.Time
	var waited time.Duration
	slow := p.slow > 0
	if slow {
		p.slow--
	}
	for round := 1; ; round++ {
		first := p.expected(ring)
		if p.progressFrom(first, round) {
			start, waited = time.Time{}, 0
		}
		if w.woken.Load() || p.stopped {
			return true
		}
		if waited > limit || slow && (p.crowded || waited > spinTime) {
			if p.pumping || p.bell == nil || ring == nil {
				return false
			}
			p.doze(w)
			continue
		}
		if !p.crowded && look(p.inlets, first, w, lockedLooks, nil) {
			continue
		}
		switch {
		case p.pollUnlocked(first, w, round, p.crowded || waited > spinTime):
		case !slow && p.slow == slowWaits: // the last yield was slow
			slow = true
		case start.IsZero():
			start = time.Now()
		default:
			waited = time.Since(start)
		}
	}
}

// ringOf returns the inlet of the rank that w waits for, if that inlet is a ring.
func (c *connections) ringOf(w *Waiter) *inlet {
	r := w.request
	if r == nil || r.operation || r.Source < 0 {
		return nil
	}
	if in := c.inlets[r.Source]; in != nil && in.ring != nil && in.sole {
		return in
	}
	return nil
}

// expected returns ring, or nil if other rings also matter at the moment.
func (p *poller) expected(ring *inlet) *inlet {
	if p.bodies > 0 || len(p.sleepers) > 0 || len(p.pushing) > 0 {
		return nil
	}
	return ring
}

// progressFrom is like progress, but polls only the ring of first, except every allRounds rounds.
func (p *poller) progressFrom(first *inlet, round int) (moved bool) {
	if first == nil || round%allRounds == 0 {
		return p.progress()
	}
	p.polls++
	p.recallAll()
	if moved = first.ring.Arrived(); moved {
		p.drain(first)
	}
	return moved
}

// pollUnlocked polls without the engine's mutex, and reports whether the caller must make progress
// or stop waiting.
func (p *poller) pollUnlocked(first *inlet, w *Waiter, round int, yield bool) (found bool) {
	inlets := p.inlets
	p.mu.Unlock()
	slow := false
	if yield {
		found = look(inlets, first, w, yieldLooks, func() bool {
			slow = !yielded()
			return !slow
		})
		if round%yieldRounds == 0 {
			runtime.Gosched() // let other goroutines of this process run; may wake a thread
		}
	} else {
		found = look(inlets, first, w, spinLooks, nil)
	}
	p.mu.Lock()
	if slow {
		p.slow = slowWaits
	}
	return found
}

// yielded lets another process run, and reports whether that took less than slowYield.
func yielded() bool {
	start := time.Now()
	yieldProcessor()
	return time.Since(start) < slowYield
}

// look polls the ring of first, or all rings if first is nil, up to the given number of times. It
// reports whether it found a frame or w was woken. Between two looks it calls pause, if pause is not
// nil, and ends early when pause returns false.
func look(inlets []*inlet, first *inlet, w *Waiter, times int, pause func() bool) bool {
	for range times {
		if first == nil {
			for _, in := range inlets {
				if in.ring.Ready() {
					return true
				}
			}
		} else if first.ring.Arrived() {
			return true
		}
		if w.woken.Load() {
			return true
		}
		if pause != nil && !pause() {
			break
		}
	}
	return false
}

// doze sleeps at the bell until a ring has data, w is woken or the engine stops. The pump is not at
// the bell, so only this goroutine sleeps there.
func (p *poller) doze(w *Waiter) {
	p.bell.Arm()
	defer p.bell.Disarm()
	if p.progress() || w.woken.Load() || p.stopped {
		return
	}
	if w.number == 0 {
		p.number(w) // one number for the whole wait, because arrivals for other waiters do not end it
	}
	w.bell, p.dozing = p.bell, true
	p.mu.Unlock()
	p.bell.Sleep()
	p.mu.Lock()
	w.bell, p.dozing = nil, false
	p.progress()
}
