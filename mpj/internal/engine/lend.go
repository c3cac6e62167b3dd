package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// When one goroutine reads a message and another goroutine waits for it, each message costs a switch
// between the two. So the goroutine that reads a channel lends the channel to the program. When a
// frame has ended a wait, the program will probably soon wait for the next message of the same
// process. It then reads the channel itself.
//
//	reading    the inlet's goroutine is in Receive
//	lent       no goroutine reads: the program is between two calls
//	borrowed   a goroutine of the program, which waits for a message of this inlet, reads
//
// Any other event that wakes the borrower interrupts its reading. The inlet's goroutine reads again
// when the program has not borrowed for restTime, or when another goroutine sleeps that may need
// messages of this inlet.

// An interruptible receiver can be lent.
type interruptible interface{ Interrupt() }

// A loan is the state of an inlet that can be lent. The engine's mutex guards it.
type loan struct {
	lent     bool
	borrowed bool
	borrower *Waiter
	borrows  uint64        // number of times the inlet has been borrowed
	recall   chan struct{} // has capacity 1; signals that the inlet's goroutine should read again
	alloc    func(frame.Header) []byte
}

// lend waits until the inlet's goroutine should read again. e.mu is held at the beginning and the
// end.
func (in *inlet) lend(timer *time.Timer) {
	e := in.e
	l := in.loan
	l.lent = true
	p := &e.conns.poller
	p.lent = append(p.lent, in)
	for again := false; !again; {
		borrows := l.borrows
		e.mu.Unlock()
		timer.Reset(restTime)
		recalled := false
		select {
		case <-timer.C:
		case <-l.recall:
			recalled = true
		case <-e.ctx.Done():
			recalled = true
		}
		e.mu.Lock()
		again = !l.borrowed && (recalled || l.borrows == borrows)
	}
	l.lent = false
	i := slices.Index(p.lent, in)
	p.lent = slices.Delete(p.lent, i, i+1)
}

// lender returns the inlet that r waits for, if it is lent and not borrowed.
func (c *connections) lender(r *Request) *inlet {
	if len(c.poller.lent) == 0 || r.Source == AnySource || r.Whole || len(c.poller.sleepers) > 0 {
		return nil
	}
	from, ok := c.e.view.Master(r.Source)
	if !ok {
		return nil
	}
	in := c.inlets[c.index(from)]
	if in == nil || in.loan == nil || !in.loan.lent || in.loan.borrowed {
		return nil
	}
	return in
}

// borrow reads one frame from in. It returns early when w is woken. e.mu is held at the beginning
// and the end.
func (in *inlet) borrow(w *Waiter) {
	e := in.e
	l := in.loan
	l.borrowed, l.borrower = true, w
	l.borrows++
	e.conns.poller.number(w)
	w.woken.Store(false)
	w.reading = in
	e.mu.Unlock()
	var err error
	in.frame, err = in.receiver.Receive(l.alloc)
	e.mu.Lock()
	w.reading = nil
	l.borrowed, l.borrower = false, nil
	switch {
	case err == nil:
		if e.err == nil { // send the resulting frames before the program continues
			e.conns.deferWrites(in.from.Rank)
			in.arrived()
			e.conns.writeTo(in.from.Rank)
		}
	case !errors.Is(err, channel.ErrInterrupted):
		in.recall() // its goroutine will get the same error
	}
	if len(e.conns.poller.sleepers) > 0 {
		in.recall()
	}
}

// recall makes the goroutine of in read again, if in is lent.
func (in *inlet) recall() {
	if in.loan == nil || !in.loan.lent {
		return
	}
	select {
	case in.loan.recall <- struct{}{}:
	default:
	}
}

// recallAll makes the goroutines of all lent inlets read again, because a sleeping goroutine may
// wait for a message of any of them.
func (p *poller) recallAll() {
	for _, in := range p.lent {
		in.recall()
	}
}

// wakeBorrowers makes the goroutines that read lent inlets check whether they still wait for them.
func (p *poller) wakeBorrowers() {
	for _, in := range p.lent {
		if in.loan.borrowed {
			in.loan.borrower.Wake()
		}
	}
}
