package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// The methods here make a protected a Transport, together with Decide, Time, View, Tick and Close.

// TrySend passes a message to the protocol if its send ends at once, and reports whether it did.
func (p *protected) TrySend(context uint32, dest int, tag int32, payload []byte, mode Mode) (sent bool) {
	return mode != Synchronous && p.windows.sendAtOnce(context, dest, tag, payload)
}

// Send passes a message to the protocol. The protocol keeps a copy of the payload.
func (p *protected) Send(r *Request, context uint32, dest int, tag int32, payload []byte, mode Mode) {
	m := protection.Message{Context: context, Dest: dest, Tag: tag, Payload: p.copyOf(payload)}
	if m.Sync = mode == Synchronous; m.Sync {
		p.windows.sendSynchronously(r, m)
	} else {
		p.windows.sendStandard(r, m)
	}
}

// Abandon ends the send of r, which may never be received.
func (p *protected) Abandon(r *Request) { p.windows.endOf(r) }

// Post posts receive r in b. A receive from any source takes a point.
func (p *protected) Post(r *Request, b *mailbox) error {
	if r.Source == AnySource {
		r.Wild = &match.Wild{Point: match.Point(p.nextPoint(r.context))}
		if err := p.decisions.preset(r); err != nil {
			return err
		}
	}
	m, result := b.Post(&r.Recv, p.decisions.decider)
	p.matched(r, m, result)
	return nil
}

// Take decides which message a receive from source with tag would take now, and waits until r has
// received it.
func (p *protected) Take(r *Request, b *mailbox, source int, tag int32) (found bool, err error) {
	w := waiters.Get().(*waiter)
	defer w.put()
	w.choice = choice{kind: probedName, box: b, source: source, tag: tag}
	values, err := p.Decide(r.context, w)
	if err != nil || len(values) == 0 {
		return false, err
	}
	if len(values) != 2 || values[0] >= uint64(p.view().N) {
		return false, errMalformed
	}
	r.Owner, r.Tag, r.Wild = r, tag, new(match.Wild)
	r.Assign(int(values[0]), values[1])
	if err := p.Post(r, b); err != nil {
		return false, err
	}
	return true, p.wait(r)
}

// Fetch gives m to r.
func (p *protected) Fetch(r *Request, m message) { r.complete(m) }

// Drop records that the program will never receive m, which has been acknowledged already.
func (p *protected) Drop(m message) { p.takeUnreceived(m) }

// Replicated returns true.
func (p *protected) Replicated() bool { return true }

// An incoming is the Handler of the frames from one process.
type incoming struct {
	p    *protected
	from view.Process
}

// Incoming returns the handler of the frames from a process.
func (p *protected) Incoming(from view.Process, _ bool, _ memoryReader) Handler {
	return incoming{p, from}
}

// Buffer returns new memory. Payloads of the protocol's own frames are never given back, so they do
// not come from the pool.
func (i incoming) Buffer(h frame.Header) []byte {
	if h.Kind != frame.Data {
		return make([]byte, h.Size)
	}
	return i.p.room(int(h.Size))
}

// Arrived processes a frame.
func (i incoming) Arrived(f frame.Frame) error { return i.p.arrived(i.from, &f) }

// Reopened asks again for the answers that the previous channel may have lost.
func (i incoming) Reopened() {
	if i.p.err() != nil {
		return
	}
	i.p.notices.queryAll(i.from.Rank)
	i.p.finish.askReachedAgain(i.from)
}

// Sent records that a queue no longer contains a payload.
func (p *protected) Sent(out parcel) { p.retained.release(out.Payload) }

// Written removes all written frames. The protocol keeps those that may have to be sent again.
func (p *protected) Written(o *outlet, n int) { o.pop(n) }

// Relieve ends the waits of sends that the present load allows to end.
func (p *protected) Relieve() { p.windows.relieve() }

// Reopened repeats what the previous channel of o may have lost.
func (p *protected) Reopened(o *outlet) {
	o.repeat()
	o.keepAnswers()
	p.apply(p.protocol.Reopened(o.to))
	p.windows.reopened(o.to)
	p.notices.queryAll(o.to.Rank)
	p.finish.askReachedAgain(o.to)
	p.relieve()
	p.arm()
}

// isAnswer reports whether a frame of a kind is the engine's own answer to another process.
func isAnswer(k frame.Kind) bool { return k == frame.Receipt || k == frame.PaceReply }

// keepAnswers removes the frames that will be sent again. These are the frames of the protocol and,
// unless they are obsolete, the engine's own questions and reports. Answers stay, because the
// question may have been repeated before this process had the new channel. Each answer stays once.
// Otherwise the queue would grow with every channel that breaks, and channels that break early would
// never carry all of it.
func (o *outlet) keepAnswers() {
	var answers []parcel
	present := make(map[frame.Header]bool)
	for _, p := range o.queue {
		if isAnswer(p.Kind) && !present[p.Header] {
			present[p.Header] = true
			answers = append(answers, p)
		}
	}
	o.pop(len(o.queue))
	for _, p := range answers {
		o.queueUp(p)
	}
}

// Unreachable returns nil: the job continues with other replicas.
func (p *protected) Unreachable(view.Process, time.Duration, error) error { return nil }

// Gone does nothing, because the protocol follows the view.
func (p *protected) Gone(*outlet) {}

// Flush implements Transport.Flush.
func (p *protected) Flush(w *waiter) error { return p.finish.run(w) }

// Checkpoint implements Engine.Checkpoint.
func (p *protected) Checkpoint(c Checkpoint) error { return p.checkpointing.run(c) }

// Sums returns the sums of all sent messages, shortened by protection.Clip.
func (p *protected) Sums() (sums []protection.Sum, ok bool) {
	sums, ok = p.protocol.Sums()
	return protection.Clip(sums), ok
}
