package core

import (
	"context"

	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// Probe waits for a message that a Recv with the same source and tag would receive, and returns its
// status without receiving it.
func Probe(c *Comm, source, tag int) (Status, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return NullStatus, nil
	}
	s, err := c.engine.Probe(c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	return c.StatusOf(s), c.wrap(err)
}

// Iprobe is the nonblocking form of Probe: ok reports whether such a message has arrived.
func Iprobe(c *Comm, source, tag int) (s Status, ok bool, err error) {
	if err := c.CheckSource(source, tag); err != nil {
		return Status{}, false, err
	}
	if source == ProcNull {
		return NullStatus, true, nil
	}
	found, ok, err := c.engine.Iprobe(c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	return c.StatusOf(found), ok, c.wrap(err)
}

// ProbeContext is Probe with a context: when ctx ends, it returns an error of class ErrContext with
// the cause of ctx. With replicas, the context of the rank's master decides for all replicas.
func ProbeContext(ctx context.Context, c *Comm, source, tag int) (Status, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return NullStatus, nil
	}
	s, ok, err := c.engine.ProbeContext(ctx, c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	if err != nil {
		return Status{}, c.wrap(err)
	}
	if !ok {
		return Status{}, contextEnded(ctx, c)
	}
	return c.StatusOf(s), nil
}

// contextEnded returns the error of a call on c whose context has ended. At a replica that did not
// decide, the context may not have ended yet.
func contextEnded(ctx context.Context, c *Comm) *Error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Canceled
	}
	return c.own(Wrap(ErrContext, cause))
}

// A Message is a message that Mprobe or Improbe has matched. Only one Imrecv can receive it.
type Message struct {
	comm    *Comm
	matched *engine.Matched // nil for ProcNull, and after the message was received
	null    bool
}

// Mprobe waits for a message that a Recv with the same source and tag would receive, and returns it
// with its status. No other receive can match the message afterwards.
func Mprobe(c *Comm, source, tag int) (*Message, Status, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, Status{}, err
	}
	if source == ProcNull {
		return &Message{comm: c, null: true}, NullStatus, nil
	}
	m, s, err := c.engine.Mprobe(c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	if err != nil {
		return nil, Status{}, c.wrap(err)
	}
	c.process.active.Add(1)
	return &Message{comm: c, matched: m}, c.StatusOf(s), nil
}

// Improbe is the nonblocking form of Mprobe: ok reports whether such a message was available.
func Improbe(c *Comm, source, tag int) (m *Message, s Status, ok bool, err error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, Status{}, false, err
	}
	if source == ProcNull {
		return &Message{comm: c, null: true}, NullStatus, true, nil
	}
	matched, found, ok, err := c.engine.Improbe(c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	if err != nil || !ok {
		return nil, Status{}, false, c.wrap(err)
	}
	c.process.active.Add(1)
	return &Message{comm: c, matched: matched}, c.StatusOf(found), true, nil
}

// Comm returns the communicator of m.
func (m *Message) Comm() *Comm { return m.comm }

// Imrecv receives m into b. call is the name of the function for errors of the request. m may be nil,
// which is an error.
func (m *Message) Imrecv(call string, b []byte) (*Request, error) {
	if m == nil {
		return nil, Failf(ErrRequest, "there is no message")
	}
	r := &Request{comm: m.comm, call: call, receive: true, null: m.null}
	if m.null {
		return r.begun(startNothing(m.comm), nil)
	}
	if m.matched == nil {
		return nil, m.comm.Failf(ErrRequest, "the message has already been received")
	}
	matched := m.matched
	m.matched = nil
	m.comm.process.active.Add(-1)
	return r.begun(m.comm.engine.Imrecv(matched, b))
}

// ImrecvBuffer is Imrecv into items of a datatype.
func (m *Message) ImrecvBuffer(call string, b Buffer) (*Request, error) {
	if m == nil {
		return nil, Failf(ErrRequest, "there is no message")
	}
	target, unpack := b.Target()
	r, err := m.Imrecv(call, target)
	if err == nil {
		r.unpack = unpack
	}
	return r, err
}
