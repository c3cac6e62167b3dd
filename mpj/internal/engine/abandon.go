package engine

import "github.com/p2pmpi/p2pmpi/internal/view"

// keepNotice keeps m, a failure notice, and ends waits in its context with ErrNotice. These are the
// waits of receives that were posted with AnyTag, and of announced sends whose payload is not empty
// and was not requested.
func (d *direct) keepNotice(b *mailbox, m message) {
	b.notice = true
	b.Keep(m)
	for r := range b.Posts() {
		if r.Tag == AnyTag {
			b.endPost(requestOf(r), ErrNotice)
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

// abandonSend ends, for its caller, a send that may never be received.
func (e *Engine) abandonSend(r *Request) {
	if r.announced {
		e.direct.detach(r)
	} else if e.protected != nil {
		e.protected.windows.endOf(r)
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
			r.finish()
			return
		}
	}
}

// Swap is Sendrecv within a collective: the received message should have the tag and fill recv. If
// it does not, the sent message may never be received, so Swap does not wait for its receipt.
func (e *Engine) Swap(context uint32, tag int32, dest int, send []byte, source int, recv []byte) (Status, error) {
	e.mu.Lock()
	r := e.spares.request()
	r.buf = recv
	return e.received(r, e.swap(r, context, tag, dest, send, source))
}

func (e *Engine) swap(r *Request, context uint32, tag int32, dest int, send []byte, source int) error {
	if err := e.sendable(dest, send); err != nil {
		return err
	}
	if err := e.post(r, context, source, AnyTag); err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	if e.sendAtOnce(context, dest, tag, send, Standard) {
		return e.wait(r)
	}
	s := e.spares.request()
	e.sendLater(s, context, dest, tag, send, Standard)
	if err := e.wait(r); err != nil {
		return err
	}
	if !r.fits(tag) {
		e.abandonSend(s)
	}
	if err := e.wait(s); err != nil {
		return err
	}
	err := s.err
	e.spares.recycle(s)
	return err
}

// fits reports whether r has received the message that a collective with this tag expects.
func (r *Request) fits(tag int32) bool {
	return r.err == nil && r.status.Tag == tag && r.status.Size == len(r.buf)
}

// Abandon discards all present and future messages of a context in which this process receives no
// further messages. It tells senders that wait to send a payload that the payload is not needed. The
// program must not post receives in the context.
func (e *Engine) Abandon(context uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	b := e.mailbox(context)
	b.abandoned = true
	b.Remove(func(m *message) bool {
		if e.protected != nil {
			e.protected.takeUnreceived(*m) // it has been acknowledged already
		} else {
			e.direct.discard(*m)
		}
		return true
	})
	e.conns.poller.leave()
}

// discard drops m.
func (d *direct) discard(m message) {
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
