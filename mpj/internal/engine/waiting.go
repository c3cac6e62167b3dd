package engine

// The functions here let a deadlock detector inspect an engine whose transport is a Counter. They only require
// the engine to record a few facts about its sleeping goroutines.

// Waiting returns the calls in which the program's goroutines wait. It is for engines without
// replicas.
func (e *Engine) Waiting() Waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiters, known := e.conns.poller.asleep()
	w := Waiting{Known: known, Sent: make(map[int]uint64), Received: make(map[int]uint64)}
	for _, s := range waiters {
		calls, ok := e.calls(s)
		w.Calls, w.Known = append(w.Calls, calls...), w.Known && ok
	}
	if counter, ok := e.transport.(Counter); ok {
		counter.Count(&w)
	}
	return w
}

// calls returns the calls in which one goroutine waits. It returns false if they are not known or
// one of them is done.
func (e *Engine) calls(w *Waiter) (calls []Call, ok bool) {
	requests := w.requests
	if w.request != nil {
		requests = []*Request{w.request}
	}
	for _, r := range requests {
		c := r.call()
		if c.Kind == 0 {
			return nil, false
		}
		calls = append(calls, c)
	}
	if w.probe.Kind != 0 {
		calls = append(calls, w.probe)
	}
	for i, c := range calls {
		calls[i].Number = w.number
		if c.Kind == Receiving || c.Kind == Probing {
			calls[i].Unexpected = e.mailbox(c.Context).firstUnexpected()
		}
	}
	return calls, len(calls) > 0 && !w.woken.Load()
}

// call describes the event that r waits for. It returns the zero Call when r is done or will be
// done.
func (r *Request) call() Call {
	c := Call{Context: r.context, Peer: r.Source, Tag: r.Tag}
	switch {
	case r.done:
	case r.Announced:
		c.Kind, c.Size = Sending, len(r.Body)
	case r.Posted():
		c.Kind = Receiving
	case r.operation:
		c.Kind = Operating
	}
	return c
}

// unexpectedMost bounds the result of firstUnexpected.
const unexpectedMost = 3

// firstUnexpected returns the first messages that wait to be matched.
func (b *Mailbox) firstUnexpected() []Status {
	var all []Status
	for m := range b.Messages() {
		if len(all) == unexpectedMost {
			break
		}
		all = append(all, StatusOf(*m))
	}
	return all
}

// SendUncounted sends payload at once, regardless of credit, as one frame that Waiting does not count. The
// caller bounds the number of such frames in transit.
func (e *Engine) SendUncounted(context uint32, dest int, payload []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendable(dest, payload); err != nil {
		return err
	}
	counter, ok := e.transport.(Counter)
	if !ok {
		return ErrReplicated
	}
	counter.SendUncounted(context, dest, payload)
	return nil
}

// RecvUncounted receives a payload that another rank has sent with SendUncounted.
func (e *Engine) RecvUncounted(context uint32, source int) ([]byte, error) {
	b, _, err := e.RecvWhole(context, source, 0)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if counter, ok := e.transport.(Counter); ok {
		counter.ReceivedUncounted(source)
	}
	return b, nil
}
