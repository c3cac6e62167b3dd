package engine

import (
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A message that is read by one goroutine and waited for by another costs a
// switch between the two. So the goroutine that reads a channel lends it to the
// program's: when a frame has ended a wait, the program is likely to come back
// soon and wait for the next from the same process, and then reads by itself.
//
//	reading    the inlet's goroutine is in Receive
//	lent       nobody is: the program is between two calls
//	borrowed   a goroutine of the program, which waits for what comes here
//
// Whoever else wakes the borrower interrupts it. When nobody has borrowed for
// restTime, or another goroutine sleeps that may need what comes here, the
// inlet's goroutine reads again.

// An interruptible receiver can be lent.
type interruptible interface{ Interrupt() }

// A loan is the state of an inlet that can be lent. The engine's mutex guards
// it.
type loan struct {
	lent     bool
	borrowed bool
	borrower *waiter
	borrows  uint64        // so far
	recall   chan struct{} // of capacity 1: the goroutine is to read again
	alloc    func(frame.Header) []byte
}

// lend waits until the inlet's goroutine is to read again. e.mu is held at the
// beginning and the end.
func (e *Engine) lend(in *inlet, timer *time.Timer) {
	l := in.loan
	l.lent = true
	e.loans++
	for again := false; !again; {
		borrows := l.borrows
		e.mu.Unlock()
		timer.Reset(restTime)
		recalled := false
		select {
		case <-timer.C:
		case <-l.recall:
			recalled = true
		case <-e.stopped:
			recalled = true
		}
		e.mu.Lock()
		again = !l.borrowed && (recalled || l.borrows == borrows)
	}
	l.lent = false
	e.loans--
}

// lender returns the inlet that r waits for, if it is lent.
func (e *Engine) lender(r *Request) *inlet {
	if e.loans == 0 || r.source == AnySource || r.whole || len(e.sleepers) > 0 {
		return nil
	}
	from, ok := e.view.Master(r.source)
	if !ok {
		return nil
	}
	in := e.inlets[e.index(from)]
	if in == nil || in.loan == nil || !in.loan.lent || in.loan.borrowed {
		return nil
	}
	return in
}

// borrow reads one frame from in. It returns early when w is woken. e.mu is held
// at the beginning and the end.
func (e *Engine) borrow(in *inlet, w *waiter) {
	l := in.loan
	l.borrowed, l.borrower = true, w
	l.borrows++
	e.sleeps++
	w.woken.Store(false)
	w.number, w.reading = e.sleeps, in
	e.mu.Unlock()
	f, err := in.receiver.Receive(l.alloc)
	e.mu.Lock()
	w.reading = nil
	l.borrowed, l.borrower = false, nil
	switch {
	case err == nil:
		if e.err == nil { // what it causes to be sent goes before the program does
			e.writes = in.from.Rank
			e.arrived(in, &f)
			e.writeTo(in.from.Rank)
		}
	case !errors.Is(err, channel.ErrInterrupted):
		in.recall() // its goroutine will come to the same end
	}
	if len(e.sleepers) > 0 {
		in.recall()
	}
}

// recall lets the goroutine of in read again, if it does not.
func (in *inlet) recall() {
	if in.loan == nil || !in.loan.lent {
		return
	}
	select {
	case in.loan.recall <- struct{}{}:
	default:
	}
}

// recallAll lets all inlets be read by their goroutines, because somebody
// sleeps who may need any of them.
func (e *Engine) recallAll() {
	if e.loans == 0 {
		return
	}
	for _, in := range e.inlets {
		if in != nil {
			in.recall()
		}
	}
}
