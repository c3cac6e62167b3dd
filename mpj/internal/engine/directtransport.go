package engine

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// The methods here make a direct a Transport, together with Abandon, Drop, Flush and Gone.

// newDirect returns the direct transport of an engine.
func newDirect(l Loop) Transport {
	return &direct{e: l.e, rank: l.e.self.Rank, inflows: make([]*inflow, l.e.view.N)}
}

// TrySend sends a message eagerly, or delivers it to this process itself, and reports whether it could.
func (d *direct) TrySend(context uint32, dest int, tag int32, payload []byte, mode Mode) (sent bool) {
	switch {
	case mode == Synchronous:
		return false
	case dest == d.rank:
		return d.sendToSelf(d.e.mailbox(context), context, tag, payload)
	}
	o := d.e.conns.outlet(view.Process{Rank: dest})
	if !o.eager(len(payload)) {
		return false
	}
	d.sendEagerly(o, context, tag, payload)
	return true
}

// Send sends a message from the caller's buffer.
func (d *direct) Send(r *Request, context uint32, dest int, tag int32, payload []byte, mode Mode) {
	conns := &d.e.conns
	attended := r.attended
	if attended {
		conns.deferWrites(dest)
	}
	r.Source = dest // the rank whose answer r waits for
	if mode != Standard || dest == d.rank || !d.sendPinned(r, conns.outlet(view.Process{Rank: dest}), context, tag, payload) {
		d.announce(r, context, dest, tag, payload)
	}
	if attended {
		conns.writeTo(dest)
	}
}

// Post posts receive r in b, or gives it the message that it matches.
func (d *direct) Post(r *Request, b *Mailbox) error {
	if m, result := b.Post(&r.Recv, true); result == match.Matched {
		d.give(r, m)
	} else if b.notice && r.Tag == AnyTag {
		b.endPost(r, ErrNotice)
	}
	return nil
}

// Take gives r the message that a receive from source with tag would take now.
func (d *direct) Take(r *Request, b *Mailbox, source int, tag int32) (found bool, err error) {
	d.e.conns.poller.advance()
	m, ok := b.Take(source, tag)
	if !ok || d.e.err != nil {
		return false, d.e.err
	}
	d.give(r, m)
	return true, nil
}

// Fetch gets the payload of m for r.
func (d *direct) Fetch(r *Request, m message) { d.give(r, m) }

// Decide makes the choice of w as soon as it is possible. Waitany, like Wait, first looks at its
// requests.
func (d *direct) Decide(_ uint32, w *Waiter) (values []uint64, err error) {
	e := d.e
	if c := &w.choice; c.kind != firstDone || !c.waits {
		if e.err != nil {
			return nil, e.err
		}
		e.conns.poller.advance()
	}
	err = e.await(w, func() (ok bool) {
		values, ok = e.outcome(w)
		return ok
	})
	return values, err
}

// Time returns the time of the engine's clock.
func (d *direct) Time() float64 { return d.e.clock().Seconds() }

// Replicated returns false.
func (d *direct) Replicated() bool { return false }

// Cancel withdraws posted receive r.
func (d *direct) Cancel(r *Request) {
	d.e.mailbox(r.context).Withdraw(&r.Recv)
	r.status = Status{Source: AnySource, Tag: AnyTag, Cancelled: true}
	r.Finish()
}

// Incoming returns the inflow from a process.
func (d *direct) Incoming(from view.Process, ring bool, memory MemoryReader) Handler {
	link := d.inflow(from)
	link.memory = memory
	if ring {
		link.lossless = true
	}
	return link
}

// Sent takes back the payload of a parcel, or ends the send to which it belongs.
func (d *direct) Sent(p Parcel) {
	if p.pooled {
		d.e.payloads.giveBack(p.Payload)
	}
	if p.owner != nil {
		d.bodyDone()
		p.owner.body = nil
		p.owner.Finish()
	}
}

// Written removes the frames that have been acknowledged.
func (d *direct) Written(o *Outlet, _ int) { o.popArrived() }

// Relieve does nothing, because no send waits for a shorter queue.
func (d *direct) Relieve() {}

// Reopened repeats the frames that have not been acknowledged, and the last acknowledgement, which
// may have been lost.
func (d *direct) Reopened(o *Outlet) {
	o.popArrived()
	o.repeat()
	if link := d.inflows[o.to.Rank]; link != nil {
		d.acknowledge(link)
	}
}

// openTimeout is the time for which the engine of a job without replicas tries to open a channel
// before it fails. Within that time, an unreachable process may leave the view or become reachable
// again. SetToleratedHang adds the silence that the job tolerates. A new view usually takes less
// than openTimeout.
var openTimeout = 30 * time.Second // a variable for tests

// Unreachable gives up after openTimeout and the silence that the job tolerates.
func (d *direct) Unreachable(to view.Process, since time.Duration, err error) error {
	if since <= openTimeout+d.e.conns.toleratedHang {
		return nil
	}
	return fmt.Errorf("channel to process %v: %w", to, err)
}

// View does nothing: the engine follows the view.
func (d *direct) View(view.View) {}

// Tick acknowledges the frames that have arrived since the last acknowledgement.
func (d *direct) Tick() {
	for _, link := range d.inflows {
		if link != nil && link.frames > 0 {
			d.acknowledge(link)
		}
	}
}

// Close does nothing.
func (d *direct) Close() {}

// Buffer returns the buffer for the payload of a frame: that of the matching receive if it is already
// known, or else new memory.
func (link *inflow) Buffer(h frame.Header) []byte {
	if b := link.direct.claim(link, h); b != nil {
		return b
	}
	return link.direct.e.payloads.room(int(h.Size))
}

// Arrived processes a frame.
func (link *inflow) Arrived(f *frame.Frame) error { return link.direct.arrived(link, f) }

// Reopened reports the arrived frames to the sender, so that it repeats only the rest.
func (link *inflow) Reopened() { link.direct.acknowledge(link) }
