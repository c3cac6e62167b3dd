package direct

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// Flush refuses the announced messages and waits until every message of this process has reached
// its destination. The program receives no more messages from now on. The mutex is not held while it
// waits.
func (d *transport) Flush(w *engine.Waiter) error {
	d.ending = true
	for _, b := range d.loop.Mailboxes() {
		d.refuseAll(b)
	}
	return d.loop.Await(w, func() bool {
		w.Await(d.announcements())
		return d.loop.Err() == nil && d.loop.QueuedBytes() == 0 && d.loop.Bodies() == 0
	})
}

// announcements returns the announced sends that wait for their receives.
func (d *transport) announcements() (all []*engine.Request) {
	for _, o := range d.outflows {
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
func (d *transport) refuseAll(b *engine.Mailbox) {
	b.Remove(func(m *match.Message) bool {
		if m.Ref == nil {
			return false
		}
		d.refuse(*m)
		return true
	})
}

// Refused returns the announced messages that Flush has refused.
func (d *transport) Refused() []engine.Unmatched { return d.refused }

// refuse tells the sender of an announced message that it will not be received, and records the
// message for Unmatched.
func (d *transport) refuse(m match.Message) {
	d.refused = append(d.refused, engine.Unmatched{Context: m.Context, Status: engine.StatusOf(m)})
	if sender := senderOf(m.Ref); sender != nil {
		d.sentToSelf(sender)
		return
	}
	d.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
}

// keepNotice keeps m, a failure notice, and ends waits in its context with ErrNotice. These are the
// waits of receives that were posted with AnyTag, and of announced sends whose payload is not empty
// and was not requested.
func (d *transport) keepNotice(b *engine.Mailbox, m match.Message) {
	b.Notice = true
	b.Keep(m)
	for r := range b.Posts() {
		if r.Tag == engine.AnyTag {
			b.EndPost(engine.RequestOf(r), engine.ErrNotice)
		}
	}
	for _, o := range d.outflows {
		if o == nil {
			continue
		}
		for _, r := range o.announced {
			if r.Context() == m.Context && len(r.Body) > 0 {
				r.Err = engine.ErrNotice
				d.detach(r)
			}
		}
	}
}

// Abandon ends, for its caller, a send that may never be received.
func (d *transport) Abandon(r *engine.Request) {
	if r.Announced {
		d.detach(r)
	}
}

// detach ends an announced send for its caller, before the receiver has requested the payload. The
// receiver may still request the payload, so detach copies it.
func (d *transport) detach(r *engine.Request) {
	o := d.outflow(r.Source)
	for name, other := range o.announced {
		if other == r {
			o.announced[name] = r.Detached()
			r.Body, r.Announced = nil, false
			r.Finish()
			return
		}
	}
}

// Drop drops m, which the program will never receive.
func (d *transport) Drop(m match.Message) {
	switch {
	case senderOf(m.Ref) != nil:
		d.sentToSelf(senderOf(m.Ref))
	case m.Ref != nil:
		d.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
	default:
		d.consume(m)
		d.loop.GiveBack(m.Payload)
	}
}
