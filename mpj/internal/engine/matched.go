package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/match"

// A Matched is a message that a probe has removed from its mailbox. Only one call of Mrecv or Imrecv
// can receive it.
type Matched struct{ message message }

// Mprobe waits for the message that a receive would take, and removes it from matching. Mprobe is a
// receive without a buffer, so it chooses its message as receives do.
func (e *Engine) Mprobe(context uint32, source int, tag int32) (*Matched, Status, error) {
	m := new(Matched)
	r := &Request{hold: &m.message}
	if err := e.receiveNow(r, context, source, tag); err != nil {
		return nil, Status{}, err
	}
	if r.err != nil {
		return nil, Status{}, r.err
	}
	return m, r.status, nil
}

// Improbe is Mprobe without waiting: ok reports whether a message was available.
func (e *Engine) Improbe(context uint32, source int, tag int32) (m *Matched, s Status, ok bool, err error) {
	defer func() { yieldUnless(ok) }()
	m = new(Matched)
	r := &Request{hold: &m.message, context: context}
	w := waiters.Get().(*waiter)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.put()
	b := e.mailbox(context)
	if e.protected == nil {
		e.conns.poller.advance()
		found, ok := b.Take(source, tag)
		if !ok || e.err != nil {
			return nil, Status{}, false, e.err
		}
		e.direct.give(r, found)
		return m, r.status, true, nil
	}
	w.choice = choice{kind: probedName, box: b, source: source, tag: tag}
	values, err := e.decide(e.nextPoint(context), w)
	if err != nil || len(values) == 0 {
		return nil, Status{}, false, err
	}
	if len(values) != 2 || values[0] >= uint64(e.view.N) {
		return nil, Status{}, false, errMalformed
	}
	r.Owner, r.Tag, r.Wild = r, tag, new(match.Wild)
	r.Assign(int(values[0]), values[1])
	found, result := b.Post(&r.Recv, e.protected.decisions.decider)
	e.protected.matched(r, found, result)
	if err := e.wait(r); err != nil {
		return nil, Status{}, false, err
	}
	return m, r.status, true, nil
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
	r := &Request{buf: buf}
	if e.protected == nil {
		e.direct.give(r, held)
		e.conns.poller.leave()
	} else {
		r.complete(held)
	}
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
