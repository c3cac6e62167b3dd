package engine

// A Matched is a message that a probe has removed from its mailbox. Only one call of Mrecv or Imrecv
// can receive it.
type Matched struct{ message message }

// Mprobe waits for the message that a receive would take, and removes it from matching. Mprobe is a
// receive without a buffer, so it chooses its message as receives do.
func (e *Engine) Mprobe(context uint32, source int, tag int32) (*Matched, Status, error) {
	m := new(Matched)
	r := &Request{Hold: &m.message}
	if err := e.receiveNow(r, context, source, tag); err != nil {
		return nil, Status{}, err
	}
	if r.Err != nil {
		return nil, Status{}, r.Err
	}
	return m, r.Status, nil
}

// Improbe is Mprobe without waiting: ok reports whether a message was available.
func (e *Engine) Improbe(context uint32, source int, tag int32) (m *Matched, s Status, ok bool, err error) {
	defer func() { yieldUnless(ok) }()
	m = new(Matched)
	r := &Request{Hold: &m.message, context: context}
	e.mu.Lock()
	defer e.mu.Unlock()
	if ok, err = e.transport.Take(r, e.mailbox(context), source, tag); !ok || err != nil {
		return nil, Status{}, false, err
	}
	return m, r.Status, true, nil
}

// Imrecv receives a matched message into buf.
func (e *Engine) Imrecv(m *Matched, buf []byte) (*Request, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	held := m.message
	m.message = message{}
	r := &Request{Buf: buf}
	e.transport.Fetch(r, held)
	e.conns.poller.leave()
	return r, nil
}

// Mrecv receives a matched message into buf and waits for it.
func (e *Engine) Mrecv(m *Matched, buf []byte) (Status, error) {
	r, err := e.Imrecv(m, buf)
	if err != nil {
		return Status{}, err
	}
	return e.Wait(r)
}
