package mpj

import (
	"context"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// WaitContext is Wait with a context: when ctx ends, it returns ErrContext and the cause of ctx. The
// request then stays active, and its buffer still belongs to it: wait for the request again, or
// Cancel it if it is a receive. With replicas, the context of the rank's master decides for all
// replicas.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	s, err := (*core.Request)(r).WaitContext(ctx)
	return Status(s), errorOf("WaitContext", err)
}

// RecvContext is Recv with a context: when ctx ends, it cancels the receive, as Cancel does, and
// returns ErrContext and the cause of ctx. buf is then unchanged, and another receive can take the
// message when it arrives. A message that has already matched is still received.
//
// With replicas, RecvContext fails with ErrUnsupported, as Cancel does, unless ctx can never end.
// Use ProbeContext and then Recv instead, or Irecv and WaitContext.
func RecvContext[T Element](ctx context.Context, c *Comm, buf []T, source, tag int) (Status, error) {
	const op = "RecvContext"
	s, err := core.RecvContext(ctx, c.core(), op, bytesOf(buf), source, tag)
	return Status(s), errorOf(op, err)
}

// ProbeContext is Probe with a context: when ctx ends, it returns ErrContext and the cause of ctx.
// With replicas, the context of the rank's master decides for all replicas.
func ProbeContext(ctx context.Context, c *Comm, source, tag int) (Status, error) {
	s, err := core.ProbeContext(ctx, c.core(), source, tag)
	return Status(s), errorOf("ProbeContext", err)
}
