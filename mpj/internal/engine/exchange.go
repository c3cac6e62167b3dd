package engine

import "cmp"

// A Part is one message of Exchange, to or from a rank.
type Part struct {
	Rank  int
	Bytes []byte
	// The result of a receive, once Exchange has returned: the status of the message, or the reason
	// of a failure.
	Status Status
	Err    error

	request *Request
}

// Exchange sends one message to each rank of out and receives one message from each rank of in, all
// at the same time. It starts all of them before it waits for any. So ranks that share a processor
// switch once, and not once per message. The sent messages have the given tag; received messages may
// have any tag. If a received message lacks that tag or does not fill its buffer, Exchange does not
// wait for sends that may never be received. The error comes from a send or from the engine.
func (e *Engine) Exchange(context uint32, tag int32, out, in []Part) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range out { // check all before posting or sending any
		if err := e.sendable(out[i].Rank, out[i].Bytes); err != nil {
			return err
		}
	}
	for i := range in {
		p := &in[i]
		p.request = e.spares.request()
		p.request.Buf = p.Bytes
		if err := e.post(p.request, context, p.Rank, AnyTag); err != nil {
			return err
		}
	}
	for i := range out {
		p := &out[i]
		if p.request = nil; !e.transport.TrySend(context, p.Rank, tag, p.Bytes, Standard) {
			p.request = e.spares.request()
			e.transport.Send(p.request, context, p.Rank, tag, p.Bytes, Standard)
		}
	}
	fits := true
	for i := range in {
		p := &in[i]
		if err := e.conclude(p); err != nil {
			return err
		}
		fits = fits && p.Err == nil && p.Status.Tag == tag && p.Status.Size == len(p.Bytes)
	}
	for i := range out {
		if out[i].request == nil {
			continue
		}
		if !fits { // the send may never be received
			e.transport.Abandon(out[i].request)
		}
		if err := e.conclude(&out[i]); err != nil || out[i].Err != nil {
			return cmp.Or(err, out[i].Err)
		}
	}
	return nil
}

// conclude waits for the request of p. e.mu is held, but not while it waits or copies a long
// payload.
func (e *Engine) conclude(p *Part) error {
	if err := e.wait(p.request); err != nil {
		return err
	}
	if b := p.request.Payload; len(b) <= shortPayload { // as in received
		if p.Status, p.Err = p.request.result(); b != nil && p.request.Payload == nil {
			e.payloads.giveBack(b)
		}
	} else {
		e.mu.Unlock()
		p.Status, p.Err = p.request.result()
		e.mu.Lock()
	}
	e.spares.recycle(p.request)
	p.request = nil
	return nil
}
