package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// flowLimit is how many bytes may be on their way, or kept for processes that
// lack them, before a send waits. Raising it costs memory and hides slow
// links; lowering it makes every sender wait for the slowest replica.
var flowLimit = 64 << 20 // a variable for tests

// load is what flowLimit limits. e.mu is held.
func (e *Engine) load() int { return e.queued + e.protocol.Retained() }

// relieve ends the waits that a lower load ends. e.mu is held.
func (e *Engine) relieve() {
	if len(e.stalled) > 0 && e.load() < flowLimit {
		for _, r := range e.stalled {
			r.finish()
		}
		e.stalled = e.stalled[:0]
	}
	e.flush.wake()
}

// start copies payload and sends it. It returns false when the sender should
// wait before it sends more; the message is on its way in any case, so that one
// larger than the limit goes through. e.mu is held.
func (e *Engine) start(context uint32, dest int, tag int32, payload []byte) (flowing bool, err error) {
	if e.err != nil {
		return false, e.err
	}
	if !e.reachable(dest) {
		return false, fmt.Errorf("rank %d has no live replica", dest)
	}
	flowing = e.load() < flowLimit
	e.apply(e.protocol.Send(protection.Message{Context: context, Dest: dest, Tag: tag, Payload: payload}))
	return flowing, nil
}

// reachable reports whether some replica of rank has not failed. A rank that
// has finished takes no messages, but to send it one is no error here: whether
// it has finished yet is a matter of timing.
func (e *Engine) reachable(rank int) bool {
	for k := range e.view.R {
		if e.view.State(view.Process{Rank: rank, Replica: k}) != view.Failed {
			return true
		}
	}
	return false
}

// Isend sends a copy of payload. The request is done when the flow allows.
func (e *Engine) Isend(context uint32, dest int, tag int32, payload []byte) (*Request, error) {
	payload = duplicate(payload)
	e.mu.Lock()
	defer e.mu.Unlock()
	flowing, err := e.start(context, dest, tag, payload)
	if err != nil {
		return nil, err
	}
	r := &Request{done: flowing}
	if !flowing {
		e.stalled = append(e.stalled, r)
	}
	return r, nil
}

// Send sends a copy of payload and waits while the flow does not allow more.
func (e *Engine) Send(context uint32, dest int, tag int32, payload []byte) error {
	payload = duplicate(payload)
	e.mu.Lock()
	defer e.mu.Unlock()
	flowing, err := e.start(context, dest, tag, payload)
	if err != nil || flowing {
		return err
	}
	r := &Request{}
	e.stalled = append(e.stalled, r)
	return e.wait(r)
}

// post posts a receive. e.mu is held.
func (e *Engine) post(r *Request, context uint32, source int, tag int32) error {
	if e.err != nil {
		return e.err
	}
	r.source, r.tag = source, tag
	b := e.mailbox(context)
	if r.wildcard = source == AnySource; r.wildcard {
		r.point = b.nextPoint(context)
		if err := e.preset(r); err != nil {
			return err
		}
	}
	if m, ok := b.post(r, e.decider); ok {
		e.matched(r, m)
	}
	return nil
}

// preset readies wildcard r: exact when its outcome is known already, open for
// the outcome when another process decides.
func (e *Engine) preset(r *Request) error {
	if outcome, ok := e.early[r.point]; ok {
		delete(e.early, r.point)
		source, seq, err := e.decodeName(outcome)
		if err != nil {
			e.fail(err)
			return err
		}
		r.exact, r.source, r.seq = true, source, seq
	} else if !e.decider {
		e.open[r.point] = &decision{request: r}
	}
	return nil
}

// Irecv posts a receive into buf.
func (e *Engine) Irecv(context uint32, source int, tag int32, buf []byte) (*Request, error) {
	r := &Request{buf: buf}
	e.mu.Lock()
	defer e.mu.Unlock()
	return r, e.post(r, context, source, tag)
}

// Recv receives into buf and waits for it.
func (e *Engine) Recv(context uint32, source int, tag int32, buf []byte) (Status, error) {
	r := requests.Get().(*Request)
	r.buf = buf
	if err := e.receiveNow(r, context, source, tag); err != nil {
		return Status{}, err // r may still be posted: leave it
	}
	s, err := r.result()
	*r = Request{}
	requests.Put(r)
	return s, err
}

// RecvWhole receives a message of any length.
func (e *Engine) RecvWhole(context uint32, source int, tag int32) ([]byte, Status, error) {
	r := new(Request)
	if err := e.receiveNow(r, context, source, tag); err != nil {
		return nil, Status{}, err
	}
	return r.payload, r.status, nil
}

// receiveNow posts r and waits until it is done.
func (e *Engine) receiveNow(r *Request, context uint32, source int, tag int32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.post(r, context, source, tag); err != nil {
		return err
	}
	return e.wait(r)
}
