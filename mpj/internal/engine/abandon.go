package engine

// Swap is Sendrecv within a collective: the received message should have the tag and fill recv. If
// it does not, the sent message may never be received, so Swap does not wait for its receipt.
func (e *Engine) Swap(context uint32, tag int32, dest int, send []byte, source int, recv []byte) (Status, error) {
	e.mu.Lock()
	r := e.spares.request()
	r.Buf = recv
	return e.received(r, e.swap(r, context, tag, dest, send, source))
}

func (e *Engine) swap(r *Request, context uint32, tag int32, dest int, send []byte, source int) error {
	if err := e.sendable(dest, send); err != nil {
		return err
	}
	if err := e.post(r, context, source, AnyTag); err != nil {
		return err
	}
	if r.Err != nil {
		return r.Err
	}
	if e.transport.TrySend(context, dest, tag, send, Standard) {
		return e.wait(r)
	}
	s := e.spares.request()
	e.transport.Send(s, context, dest, tag, send, Standard)
	if err := e.wait(r); err != nil {
		return err
	}
	if !r.fits(tag) {
		e.transport.Abandon(s)
	}
	if err := e.wait(s); err != nil {
		return err
	}
	err := s.Err
	e.spares.recycle(s)
	return err
}

// fits reports whether r has received the message that a collective with this tag expects.
func (r *Request) fits(tag int32) bool {
	return r.Err == nil && r.Status.Tag == tag && r.Status.Size == len(r.Buf)
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
	b.Abandoned = true
	b.Remove(func(m *message) bool {
		e.transport.Drop(*m)
		return true
	})
	e.conns.poller.leave()
}
