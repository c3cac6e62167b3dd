package engine

import "github.com/p2pmpi/p2pmpi/internal/view"

// Flush refuses the announced messages and waits until every message of this process has reached
// its destination. The program receives no more messages from now on. e.mu is held, but not while it
// waits.
func (d *direct) Flush(w *Waiter) error {
	e := d.e
	d.ending = true
	for _, b := range e.mailboxes {
		d.refuseAll(b)
	}
	return e.await(w, func() bool {
		w.requests = d.announcements()
		return e.err == nil && e.conns.queued == 0 && e.conns.poller.bodies == 0
	})
}

// announcements returns the announced sends that wait for their receives.
func (d *direct) announcements() (all []*Request) {
	for _, o := range d.e.conns.outlets {
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
func (d *direct) refuseAll(b *Mailbox) {
	b.Remove(func(m *message) bool {
		if m.Ref == nil {
			return false
		}
		d.refuse(*m)
		return true
	})
}

// Refused returns the announced messages that Flush has refused.
func (d *direct) Refused() []Unmatched { return d.refused }

// refuse tells the sender of an announced message that it will not be received, and records the
// message for Unmatched.
func (d *direct) refuse(m message) {
	d.refused = append(d.refused, Unmatched{Context: m.Context, Status: statusOf(m)})
	if sender := senderOf(&m); sender != nil {
		d.sentToSelf(sender)
		return
	}
	d.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
}
