package protected

import (
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// finish ends the communication of a process whose program has called Finalize. When a process
// finishes, the replicas of other ranks drop the messages that they hold for it. From then on they
// cannot compare its acknowledgements with their own messages. So its last acknowledgements must
// arrive before it finishes. finish sends each of these replicas a Query for message 0, which every
// process treats as matched. Frames arrive in order, so the match notice shows that all earlier
// frames have arrived. Of the engine, it needs the view, the queues and their load, the unmatched
// messages, the tolerated hang, and the wait of Flush.
type finish struct {
	p         *transport
	ending    bool           // Flush has begun, so the program receives no more messages
	unreached []view.Process // processes that have not answered askReached
}

// answerTimeout, plus the silence that the job tolerates, bounds the wait of Flush for the last
// answers. A process that has not answered by then and is still live in the view has probably ended,
// and its peer conceals the end. Such a peer must not hold up the job (V4).
var answerTimeout = 10 * time.Second // a variable for tests

// run implements Flush, whose waiter is w.
func (f *finish) run(w *engine.Waiter) error {
	f.endReceiving()
	// Acknowledge the last messages, although no process waits for the acknowledgements: the
	// replicas of the source compare them.
	f.p.apply(f.p.protocol.Tick())
	f.askReached()
	return f.awaitLast(w)
}

// endReceiving records that the program receives no more messages. From then on, messages to this
// process delay no sender.
func (f *finish) endReceiving() {
	f.ending = true
	for _, b := range f.p.loop.Mailboxes() {
		for m := range b.Messages() {
			f.drop(m)
		}
	}
}

// drop drops the payload of a message that the program will not receive. It keeps the reason of a
// failure, because Finalize reports it.
func (f *finish) drop(m *match.Message) {
	f.p.takeUnreceived(*m)
	if m.Tag == engineapi.ReasonTag && len(m.Payload) <= engineapi.ReasonMost {
		return
	}
	m.Payload = nil
}

// awaitLast waits until all messages and acknowledgements of this process have arrived. The wait for
// messages has no limit. The wait for acknowledgements, which only serve to find divergences, ends
// after answerTimeout.
func (f *finish) awaitLast(w *engine.Waiter) error {
	p := f.p
	acknowledged := func() bool { return p.loop.Err() == nil && p.reports.pending == 0 && p.protocol.Retained() == 0 }
	if err := p.loop.Await(w, acknowledged); err != nil {
		return err
	}
	late := false
	timer := time.AfterFunc(answerTimeout+p.loop.ToleratedHang(), func() {
		p.loop.Lock()
		defer p.loop.Unlock()
		late = true
		p.loop.WakeFlush()
	})
	defer timer.Stop()
	return p.loop.Await(w, func() bool { return acknowledged() && (late || p.loop.QueuedBytes() == 0 && f.reachedAll()) })
}

// askReached asks all processes of other ranks to which this process has sent frames.
func (f *finish) askReached() {
	f.unreached = f.unreached[:0]
	for _, to := range f.p.loop.Destinations() {
		if to.Rank != f.p.loop.Self().Rank && f.p.loop.View().Counts(to) {
			f.unreached = append(f.unreached, to)
			f.query(to)
		}
	}
}

// query asks a process whether all earlier frames have arrived.
func (f *finish) query(to view.Process) {
	f.p.queue(to, frame.Frame{Header: frame.Header{Kind: frame.Query, Rank: uint32(f.p.loop.Self().Rank)}})
}

// askReachedAgain repeats the question after a channel to or from a process has been reopened,
// because the question or the answer may have been lost.
func (f *finish) askReachedAgain(to view.Process) {
	if slices.Contains(f.unreached, to) {
		f.query(to)
	}
}

// reached records the answer of a process.
func (f *finish) reached(p view.Process) {
	if i := slices.Index(f.unreached, p); i >= 0 {
		f.unreached = slices.Delete(f.unreached, i, i+1)
		f.p.loop.WakeFlush()
	}
}

// reachedAll reports whether every process asked by askReached has answered. It does not wait for
// processes that were set aside or are no longer live.
func (f *finish) reachedAll() bool { return !slices.ContainsFunc(f.unreached, f.p.loop.View().Counts) }
