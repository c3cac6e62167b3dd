package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A waiter is where one goroutine of the program sleeps until something has
// changed. Waking it too often is harmless: it looks again. The engine's mutex
// guards it.
type waiter struct {
	changed  chan struct{} // of capacity 1
	spinning bool          // looks at woken instead
	bell     Bell          // where it sleeps while it spins, or nil
	woken    atomic.Bool
	stale    bool   // changed may be full
	reading  *inlet // is read by this goroutine, which is interrupted

	// What the goroutine waits for, for Waiting; nothing when that is not known.
	number   uint64 // of this sleep
	request  *Request
	requests []*Request // any of these
	probe    Call
}

var waiters = sync.Pool{New: func() any { return &waiter{changed: make(chan struct{}, 1)} }}

func (w *waiter) wake() {
	if w == nil {
		return
	}
	w.woken.Store(true)
	switch {
	case w.spinning:
		if w.bell != nil {
			w.bell.Disarm()
		}
		return
	case w.reading != nil:
		w.reading.receiver.(interruptible).Interrupt()
		return
	}
	w.stale = true
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// put gives back a waiter that nobody wakes any more.
func (w *waiter) put() {
	w.reset()
	w.requests, w.probe = nil, Call{}
	waiters.Put(w)
}

func (w *waiter) reset() {
	if w.stale {
		w.stale = false
		select {
		case <-w.changed:
		default:
		}
	}
}

// waiter and recycleWaiter do the same for calls that are made very often. e.mu
// is held.
func (e *Engine) waiter() *waiter {
	if last := len(e.waiters) - 1; last >= 0 {
		w := e.waiters[last]
		e.waiters = e.waiters[:last]
		return w
	}
	return waiters.Get().(*waiter)
}

func (e *Engine) recycleWaiter(w *waiter) {
	w.reset()
	if len(e.waiters) < spare {
		e.waiters = append(e.waiters, w)
	}
}

// await waits until done returns true, which it looks at whenever w is woken.
// e.mu is held, also while done runs, and released while await sleeps.
func (e *Engine) await(w *waiter, done func() bool) error {
	for !done() {
		if e.err != nil {
			return e.err
		}
		e.sleep(w)
	}
	return nil
}

// sleep returns when w has been woken, or earlier. Meanwhile rings are polled:
// by this goroutine for a while if no other does, then by the pump. e.mu is held
// at the beginning and the end, and whoever wakes w holds it too.
func (e *Engine) sleep(w *waiter) {
	if w.woken.Load() {
		w.woken.Store(false)
	}
	if e.poller.free() && e.spin(w) {
		return
	}
	e.sleeps++
	w.number = e.sleeps
	e.sleepers = append(e.sleepers, w)
	e.poller.watch()
	e.recallAll()
	e.mu.Unlock()
	<-w.changed
	e.mu.Lock()
	w.stale = false
	i := slices.Index(e.sleepers, w)
	e.sleepers = slices.Delete(e.sleepers, i, i+1)
}
