package core

import (
	"context"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// The functions here return requests. call is the name of the program's function, for errors of the
// request.

// Isend is the nonblocking form of Send. b belongs to the request until the request is complete.
func Isend(c *Comm, call string, mode engineapi.Mode, b []byte, dest, tag int) (*Request, error) {
	if err := c.CheckDest(dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, description: describeSend(c, call, b, dest, tag), null: dest == ProcNull}
	return r.begun(startSend(c, mode, b, dest, tag))
}

// Irecv is the nonblocking form of Recv. b belongs to the request until the request is complete.
func Irecv(c *Comm, call string, b []byte, source, tag int) (*Request, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, description: describeRecv(c, call, b, source, tag), receive: true, null: source == ProcNull}
	return r.begun(startRecv(c, b, source, tag))
}

// startSend starts a send whose arguments have been checked.
func startSend(c *Comm, mode engineapi.Mode, b []byte, dest, tag int) (*engine.Request, error) {
	if dest == ProcNull {
		return startNothing(c), nil
	}
	return c.engine.Isend(c.Context(MessageSlot), c.WorldRank(dest), int32(tag), b, mode)
}

// startRecv starts a receive whose arguments have been checked.
func startRecv(c *Comm, b []byte, source, tag int) (*engine.Request, error) {
	if source == ProcNull {
		return startNothing(c), nil
	}
	return c.engine.Irecv(c.Context(MessageSlot), c.WorldRank(source), int32(tag), b)
}

// startNothing returns a completed request for a send to or a receive from ProcNull.
func startNothing(c *Comm) *engine.Request {
	r := c.engine.Begin()
	c.engine.Finish(r, engineapi.Status{}, nil)
	return r
}

// RecvContext is Recv with a context: when ctx ends, it cancels the receive and returns an error of
// class ErrContext with the cause of ctx. A message that has already matched is still received. With
// replicas, RecvContext fails unless ctx can never end.
func RecvContext(ctx context.Context, c *Comm, call string, b []byte, source, tag int) (Status, error) {
	if ctx.Done() == nil {
		return Recv(c, b, source, tag)
	}
	if err := c.Check(); err != nil {
		return Status{}, err
	}
	if c.engine.Replicated() {
		return Status{}, c.Failf(ErrUnsupported, "replicas cannot cancel a receive: use ProbeContext and then Recv")
	}
	r, err := Irecv(c, call, b, source, tag)
	if err != nil {
		return Status{}, err
	}
	done, err := c.engine.WaitContext(ctx, r.request)
	if err != nil {
		return Status{}, c.wrap(err)
	}
	if !done {
		if err := c.engine.Cancel(r.request); err != nil {
			return Status{}, c.wrap(err)
		}
	}
	s, err := r.Wait()
	if s.Cancelled {
		return s, contextEnded(ctx, c)
	}
	return s, err
}
