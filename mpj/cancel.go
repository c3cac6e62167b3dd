package mpj

import "context"

// WaitContext is Wait with a context: when ctx ends, it returns ErrContext and the cause of ctx. The
// request then stays active, and its buffer still belongs to it: wait for the request again, or
// Cancel it if it is a receive. With replicas, the context of the rank's master decides for all
// replicas.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	if !r.active() || ctx.Done() == nil {
		return r.result()
	}
	done, err := r.comm.engine().WaitContext(ctx, r.request)
	if err != nil {
		return Status{}, r.comm.wrap(r.op, err)
	}
	if !done {
		return Status{}, r.comm.contextError(ctx, r.op)
	}
	return r.result()
}

// contextError returns the error of a call whose context has ended. At a replica that did not
// decide, the context may not have ended yet.
func (c *Comm) contextError(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Canceled
	}
	return c.handle(&Error{Class: ErrContext, Op: op, Err: cause})
}

// RecvContext is Recv with a context: when ctx ends, it cancels the receive, as Cancel does, and
// returns ErrContext and the cause of ctx. buf is then unchanged, and another receive can take the
// message when it arrives. A message that has already matched is still received.
//
// With replicas, RecvContext fails with ErrUnsupported, as Cancel does, unless ctx can never end.
// Use ProbeContext and then Recv instead, or Irecv and WaitContext.
func RecvContext[T Element](ctx context.Context, c *Comm, buf []T, source, tag int) (Status, error) {
	const op = "RecvContext"
	if ctx.Done() == nil {
		return c.recvBytes(op, bytesOf(buf), source, tag)
	}
	if err := c.check(op); err != nil {
		return Status{}, err
	}
	if c.engine().Replicated() {
		return Status{}, c.failf(ErrUnsupported, op, "replicas cannot cancel a receive: use ProbeContext and then Recv")
	}
	r, err := c.irecvBytes(op, bytesOf(buf), source, tag)
	if err != nil {
		return Status{}, err
	}
	done, err := c.engine().WaitContext(ctx, r.request)
	if err != nil {
		return Status{}, c.wrap(op, err)
	}
	if !done {
		if err := c.engine().Cancel(r.request); err != nil {
			return Status{}, c.wrap(op, err)
		}
	}
	s, err := r.result()
	if s.Cancelled {
		return s, c.contextError(ctx, op)
	}
	return s, err
}

// ProbeContext is Probe with a context: when ctx ends, it returns ErrContext and the cause of ctx.
// With replicas, the context of the rank's master decides for all replicas.
func ProbeContext(ctx context.Context, c *Comm, source, tag int) (Status, error) {
	const op = "ProbeContext"
	if err := c.checkSource(op, source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return nothing, nil
	}
	s, ok, err := c.engine().ProbeContext(ctx, c.context(messageSlot), c.worldRank(source), int32(tag))
	if err != nil {
		return Status{}, c.wrap(op, err)
	}
	if !ok {
		return Status{}, c.contextError(ctx, op)
	}
	return c.statusOf(s), nil
}
