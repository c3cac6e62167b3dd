package engine

import (
	"sync"
	"sync/atomic"
)

// A Waiter lets one goroutine of the program sleep until a change. A spurious wake-up is harmless,
// because the goroutine checks its condition again. The engine's mutex guards the waiter.
type Waiter struct {
	changed  chan struct{} // has capacity 1; signals a change
	spinning bool          // the goroutine polls woken and does not sleep on changed
	bell     Bell          // bell at which the goroutine sleeps while spinning, or nil
	woken    atomic.Bool
	stale    bool   // changed may be full
	reading  *inlet // inlet that this goroutine is reading; waking interrupts it

	choice choice // what the call decides
	values [fewValues]uint64

	// The event that the goroutine waits for, as reported by Waiting; unset if unknown.
	number   uint64 // number of this sleep
	request  *Request
	requests []*Request // any of these
	probe    Call
}

var waiters = sync.Pool{New: func() any { return &Waiter{changed: make(chan struct{}, 1)} }}

// NewWaiter returns a Waiter, on which the caller calls Put later.
func NewWaiter() *Waiter { return waiters.Get().(*Waiter) }

// ChooseNumber makes the result of number the choice of w. number must not call the engine.
func (w *Waiter) ChooseNumber(number func() uint64) {
	w.choice = choice{kind: chosenNumber, number: number}
}

// ChooseMessage makes the choice of w the source and the number of the message that a receive from
// source with tag in b would take now. Without such a message, the outcome is empty.
func (w *Waiter) ChooseMessage(b *Mailbox, source int, tag int32) {
	w.choice = choice{kind: probedName, box: b, source: source, tag: tag}
}

// IsWaitany reports whether the choice of w is that of a wait for the first of several requests.
func (w *Waiter) IsWaitany() bool { return w.choice.kind == firstDone && w.choice.waits }

// Await records that w waits for any of rs.
func (w *Waiter) Await(rs []*Request) { w.requests = rs }

// Wake makes the goroutine of w check its condition again. It has no effect if w is nil.
func (w *Waiter) Wake() {
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

// Put returns a Waiter to the pool. No goroutine may wake the waiter afterwards.
func (w *Waiter) Put() {
	w.reset()
	w.probe = Call{}
	w.forget()
	waiters.Put(w)
}

// forget clears what w decides and waits for.
func (w *Waiter) forget() { w.requests, w.choice = nil, choice{} }

func (w *Waiter) reset() {
	if w.stale {
		w.stale = false
		select {
		case <-w.changed:
		default:
		}
	}
}

// await waits until done returns true, and calls it whenever w is woken. e.mu is held, also while
// done runs, and released while await sleeps.
func (e *Engine) await(w *Waiter, done func() bool) error {
	for !done() {
		if e.err != nil {
			return e.err
		}
		e.sleep(w)
	}
	return nil
}

// sleep returns when w has been woken, or earlier. If no other goroutine polls the rings, this
// goroutine polls them for a while, and then the pump does. e.mu is held at the beginning and the
// end. A goroutine that wakes w also holds e.mu.
func (e *Engine) sleep(w *Waiter) {
	if w.woken.Load() {
		w.woken.Store(false)
	}
	p := &e.conns.poller
	if p.free() {
		woken := p.spin(w, e.conns.ringOf(w))
		if e.finished.undrained {
			e.drainFinished()
		}
		p.leave()
		if woken {
			return
		}
	}
	p.sleep(w)
}
