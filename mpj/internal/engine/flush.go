package engine

import (
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Flush waits until every message of this process has reached its destination. The program receives
// no more messages from now on. Flush refuses the messages announced to this process, which ends
// their sends. So two processes do not wait for each other to receive messages that neither of them
// receives.
func (e *Engine) Flush() error {
	w := waiters.Get().(*waiter)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.put()
	e.flush = w
	defer func() { e.flush = nil }()
	if e.protocol != nil {
		e.endFlows()
		// Acknowledge the last messages, although no process waits for the acknowledgements: the
		// replicas of the source compare them.
		e.apply(e.protocol.Tick())
		e.askReached()
		return e.awaitLast(w)
	}
	e.ending = true
	for _, b := range e.mailboxes {
		e.refuseAll(b)
	}
	return e.await(w, func() bool {
		w.requests = e.announcements()
		return e.err == nil && e.queued == 0 && e.bodies == 0
	})
}

// When a process finishes, the replicas of other ranks drop the messages that they hold for it.
// From then on they cannot compare its acknowledgements with their own messages. So its last
// acknowledgements must arrive before it finishes. Flush sends each of these replicas a Query for
// message 0, which every process treats as matched. Frames arrive in order, so the Receipt shows
// that all earlier frames have arrived.

// answerTimeout, plus the silence that the job tolerates, bounds the wait of Flush for the last
// answers. A process that has not answered by then and is still live in the view has probably ended,
// and its peer conceals the end. Such a peer must not hold up the job (V4).
var answerTimeout = 10 * time.Second // a variable for tests

// awaitLast waits until all messages and acknowledgements of this process have arrived. The wait for
// messages has no limit. The wait for acknowledgements, which only serve to find divergences, ends
// after answerTimeout. e.mu is held, but not while it waits.
func (e *Engine) awaitLast(w *waiter) error {
	acknowledged := func() bool { return e.err == nil && e.telling == 0 && e.protocol.Retained() == 0 }
	if err := e.await(w, acknowledged); err != nil {
		return err
	}
	late := false
	timer := time.AfterFunc(answerTimeout+e.toleratedHang, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		late = true
		e.flush.wake()
	})
	defer timer.Stop()
	return e.await(w, func() bool { return acknowledged() && (late || e.queued == 0 && e.reachedAll()) })
}

// askReached asks all processes of other ranks to which this process has sent frames. e.mu is held.
func (e *Engine) askReached() {
	e.unreached = e.unreached[:0]
	for _, o := range e.outlets {
		if o != nil && o.to.Rank != e.self.Rank && e.view.Counts(o.to) {
			e.unreached = append(e.unreached, o.to)
			e.enqueue(e.reachedQuery(o.to))
		}
	}
}

func (e *Engine) reachedQuery(to view.Process) protection.Envelope {
	return protection.Envelope{To: to, Frame: frame.Frame{Header: frame.Header{Kind: frame.Query, Rank: uint32(e.self.Rank)}}}
}

// askReachedAgain repeats the question after a channel to or from a process has been reopened,
// because the question or the answer may have been lost. e.mu is held.
func (e *Engine) askReachedAgain(to view.Process) {
	if slices.Contains(e.unreached, to) {
		e.enqueue(e.reachedQuery(to))
	}
}

// reached records the answer of a process. e.mu is held.
func (e *Engine) reached(p view.Process) {
	if i := slices.Index(e.unreached, p); i >= 0 {
		e.unreached = slices.Delete(e.unreached, i, i+1)
		e.flush.wake()
	}
}

// reachedAll reports whether every process asked by askReached has answered. It does not wait for
// processes that were set aside or are no longer live. e.mu is held.
func (e *Engine) reachedAll() bool { return !slices.ContainsFunc(e.unreached, e.view.Counts) }

// announcements returns the announced sends that wait for their receives.
func (e *Engine) announcements() (all []*Request) {
	for _, o := range e.outlets {
		if o == nil {
			continue
		}
		for _, r := range o.announced {
			all = append(all, r)
		}
	}
	return all
}

// refuseAll refuses the announced messages in b.
func (e *Engine) refuseAll(b *mailbox) {
	b.Remove(func(m *message) bool {
		if m.Ref == nil {
			return false
		}
		e.refuse(*m)
		return true
	})
}

// refuse tells the sender of an announced message that it will not be received, and records the
// message for Unmatched.
func (e *Engine) refuse(m message) {
	e.refused = append(e.refused, Unmatched{Context: m.Context, Status: statusOf(m)})
	if sender := senderOf(&m); sender != nil {
		e.sentToSelf(sender)
		return
	}
	e.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
}
