package engine

import "github.com/p2pmpi/p2pmpi/internal/view"

// keepNotice keeps m, a failure notice, and ends waits in its context with ErrNotice. These are the
// waits of receives that were posted with AnyTag, and of announced sends whose payload is not empty
// and was not requested.
func (d *direct) keepNotice(b *Mailbox, m message) {
	b.notice = true
	b.Keep(m)
	for r := range b.Posts() {
		if r.Tag == AnyTag {
			b.endPost(RequestOf(r), ErrNotice)
		}
	}
	for _, o := range d.e.conns.outlets {
		if o == nil {
			continue
		}
		for _, r := range o.announced {
			if r.context == m.Context && len(r.body) > 0 {
				r.err = ErrNotice
				d.detach(r)
			}
		}
	}
}

// Abandon ends, for its caller, a send that may never be received.
func (d *direct) Abandon(r *Request) {
	if r.announced {
		d.detach(r)
	}
}

// detach ends an announced send for its caller, before the receiver has requested the payload. The
// receiver may still request the payload, so detach copies it.
func (d *direct) detach(r *Request) {
	o := d.e.conns.outlet(view.Process{Rank: r.Source})
	for name, other := range o.announced {
		if other == r {
			rest := *r
			rest.body, rest.err, rest.waiter = duplicate(r.body), nil, nil
			o.announced[name] = &rest
			r.body, r.announced = nil, false
			r.Finish()
			return
		}
	}
}

// Drop drops m, which the program will never receive.
func (d *direct) Drop(m message) {
	switch {
	case senderOf(&m) != nil:
		d.sentToSelf(senderOf(&m))
	case m.Ref != nil:
		d.answer(view.Process{Rank: m.Source}, m.Seq, notNeeded)
	default:
		d.consume(m)
		d.e.payloads.giveBack(m.Payload)
	}
}
