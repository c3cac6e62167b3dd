package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// MaxMessage is the length in bytes of the longest message.
const MaxMessage = frame.MaxPayload

// Send sends payload and returns when the caller may reuse payload: at once if the message is short
// or the receiver has room, and otherwise when the receiver has taken the message.
func (e *Engine) Send(context uint32, dest int, tag int32, payload []byte, mode Mode) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendable(dest, payload); err != nil {
		return err
	}
	if e.transport.TrySend(context, dest, tag, payload, mode) {
		return nil
	}
	r := e.spares.request()
	r.Attended = true
	e.transport.Send(r, context, dest, tag, payload, mode)
	err := e.wait(r)
	if err == nil {
		err = r.Err
		e.spares.recycle(r)
	}
	return err
}

// Isend is Send without waiting: payload belongs to the engine until the request is done.
func (e *Engine) Isend(context uint32, dest int, tag int32, payload []byte, mode Mode) (*Request, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendable(dest, payload); err != nil {
		return nil, err
	}
	if e.transport.TrySend(context, dest, tag, payload, mode) {
		return &e.spares.sent, nil
	}
	r := new(Request)
	e.transport.Send(r, context, dest, tag, payload, mode)
	e.conns.poller.leave()
	return r, nil
}

func (e *Engine) sendable(dest int, payload []byte) error {
	if e.err != nil {
		return e.err
	}
	if uint64(len(payload)) > MaxMessage {
		return fmt.Errorf("message of %d bytes exceeds the limit of %d", len(payload), uint64(MaxMessage))
	}
	if !e.reachable(dest) {
		return fmt.Errorf("rank %d has no live replica", dest)
	}
	return nil
}

// reachable reports whether a replica of rank has not failed. A finished rank accepts no messages,
// but a send to it is not an error here, because the moment at which it finishes depends on timing.
func (e *Engine) reachable(rank int) bool {
	for k := range e.view.R {
		if e.view.Has(view.Process{Rank: rank, Replica: k}) {
			return true
		}
	}
	return false
}

// post posts receive r. e.mu is held.
func (e *Engine) post(r *Request, context uint32, source int, tag int32) error {
	if e.err != nil {
		return e.err
	}
	r.context, r.Source, r.Tag, r.Owner = context, source, tag, r
	return e.transport.Post(r, e.mailbox(context))
}

// Irecv posts a receive into buf.
func (e *Engine) Irecv(context uint32, source int, tag int32, buf []byte) (*Request, error) {
	r := &Request{Buf: buf}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.post(r, context, source, tag); err != nil {
		return nil, err
	}
	e.conns.poller.leave()
	return r, nil
}

// Recv receives into buf and waits for the message.
func (e *Engine) Recv(context uint32, source int, tag int32, buf []byte) (Status, error) {
	e.mu.Lock()
	r := e.spares.request()
	r.Buf = buf
	err := e.post(r, context, source, tag)
	if err == nil {
		err = e.wait(r)
	}
	return e.received(r, err)
}

// received returns the result of receive r and recycles it. r is done unless err is set. e.mu is
// held, and released.
func (e *Engine) received(r *Request, err error) (Status, error) {
	if err != nil { // r may still be posted: do not recycle it
		e.mu.Unlock()
		return Status{}, err
	}
	if p := r.Payload; len(p) <= shortPayload { // even if the payload is already in the caller's buffer
		s, err := r.result()
		if p != nil && r.Payload == nil {
			e.payloads.giveBack(p)
		}
		e.spares.recycle(r)
		e.mu.Unlock()
		return s, err
	}
	e.mu.Unlock()
	s, err := r.result()
	e.mu.Lock()
	e.spares.recycle(r)
	e.mu.Unlock()
	return s, err
}

// RecvWhole receives a message of any length.
func (e *Engine) RecvWhole(context uint32, source int, tag int32) ([]byte, Status, error) {
	r := &Request{Whole: true}
	if err := e.receiveNow(r, context, source, tag); err != nil {
		return nil, Status{}, err
	}
	return r.Payload, r.Status, r.Err
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

// Sendrecv sends to one rank and receives from another at the same time.
func (e *Engine) Sendrecv(context uint32, dest int, sendTag int32, send []byte, source int, recvTag int32, recv []byte) (Status, error) {
	e.mu.Lock()
	r := e.spares.request()
	r.Buf = recv
	return e.received(r, e.exchange(r, context, dest, sendTag, send, source, recvTag))
}

// exchange posts r, sends, and waits for both.
func (e *Engine) exchange(r *Request, context uint32, dest int, sendTag int32, send []byte, source int, recvTag int32) error {
	if err := e.sendable(dest, send); err != nil {
		return err
	}
	if err := e.post(r, context, source, recvTag); err != nil {
		return err
	}
	if e.transport.TrySend(context, dest, sendTag, send, Standard) {
		return e.wait(r)
	}
	s := e.spares.request()
	e.transport.Send(s, context, dest, sendTag, send, Standard)
	if err := e.wait(s); err != nil {
		return err
	}
	e.spares.recycle(s)
	return e.wait(r)
}
