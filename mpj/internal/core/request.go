package core

import (
	"cmp"
	"context"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A Request is an operation in progress: a send, a receive or a collective. It is active until a
// Wait or Test has reported it complete. Wait and Test of an inactive or nil request return at once,
// with EmptyStatus and no error.
//
// A persistent request is active from each Start until it is reported complete.
//
// Only one goroutine at a time may use a request.
type Request struct {
	comm        *Comm
	request     *engine.Request // nil if persistent and never started
	call        string          // name of the function that made the request, for errors
	description string          // with checks: call and its arguments
	receive     bool
	null        bool // whether dest or source is ProcNull
	collective  bool
	reported    bool
	freed       bool                            // the program will not wait for it
	retired     bool                            // persistent, and cannot be started again
	unpack      *Unpacking                      // for receives with a datatype that has gaps
	start       func() (*engine.Request, error) // of a persistent request, and otherwise nil
}

// NewCollective returns the request of a collective of c, which the engine completes with request.
// description is the description of the call, or "" without checks.
func NewCollective(c *Comm, call string, request *engine.Request, description string) *Request {
	c.process.active.Add(1)
	r := &Request{comm: c, request: request, call: call, collective: true}
	if description != "" {
		r.note(description)
	}
	return r
}

// begun stores the engine's request in r, which has started.
func (r *Request) begun(request *engine.Request, err error) (*Request, error) {
	if err != nil {
		return nil, r.failed(err)
	}
	r.request, r.reported = request, false
	r.comm.process.active.Add(1)
	if r.comm.process.checks {
		r.note(cmp.Or(r.description, r.call))
	}
	return r, nil
}

// failed returns the error of r for an error of the engine. It returns nil for nil.
func (r *Request) failed(err error) error {
	if err == nil {
		return nil
	}
	e := r.comm.Translate(err)
	e.Call = cmp.Or(e.Call, r.call)
	return e
}

func (r *Request) active() bool { return r != nil && r.request != nil && !r.reported }

// Wait waits until r is complete. The name of an error is that of the function that made r.
func (r *Request) Wait() (Status, error) {
	if !r.active() {
		return EmptyStatus, nil
	}
	s, err := r.outcome()
	if r.reported = true; !r.freed {
		r.comm.process.active.Add(-1)
	}
	r.settle()
	return s, err
}

// outcome waits until r is complete and returns its outcome.
func (r *Request) outcome() (Status, error) {
	s, err := r.comm.engine.Wait(r.request)
	if err == nil {
		r.unpack.Finish(s.Size)
	}
	return r.status(s), r.failed(err)
}

// status converts the status of the engine to the status that Wait returns for r.
func (r *Request) status(s engineapi.Status) Status {
	switch {
	case !r.receive:
		return EmptyStatus
	case r.null:
		return NullStatus
	case s.Cancelled:
		return Status{Source: AnySource, Tag: AnyTag, Cancelled: true}
	}
	return r.comm.StatusOf(s)
}

// Test reports whether r is complete and, if so, returns what Wait would return.
func (r *Request) Test() (s Status, done bool, err error) {
	if r.active() {
		done, err := r.comm.engine.Testall([]*engine.Request{r.request})
		if err != nil || !done {
			return Status{}, false, r.comm.wrap(err)
		}
	}
	s, err = r.Wait()
	return s, true, err
}

// GetStatus is like Test, but leaves r unchanged: an active request stays active, and Wait reports
// it later.
func (r *Request) GetStatus() (s Status, done bool, err error) {
	if !r.active() {
		return EmptyStatus, true, nil
	}
	done, err = r.comm.engine.Testall([]*engine.Request{r.request})
	if err != nil || !done {
		return Status{}, false, r.comm.wrap(err)
	}
	s, err = r.outcome()
	return s, true, err
}

// WaitContext is Wait with a context: when ctx ends, it returns an error of class ErrContext with the
// cause of ctx, and r stays active. With replicas, the context of the rank's master decides for all
// replicas.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	if !r.active() || ctx.Done() == nil {
		return r.Wait()
	}
	done, err := r.comm.engine.WaitContext(ctx, r.request)
	if err != nil {
		return Status{}, r.failed(err)
	}
	if !done {
		return Status{}, r.failed(contextEnded(ctx, r.comm))
	}
	return r.Wait()
}

// Cancel cancels a receive that no message has matched yet. The field Cancelled of the status that
// Wait returns reports whether the receive was cancelled. Sends are not cancelled. With replicas,
// Cancel fails, because a message may have reached one replica but not another.
func (r *Request) Cancel() error {
	if !r.active() {
		return nil
	}
	return r.comm.wrap(r.comm.engine.Cancel(r.request))
}

// Free makes a persistent request impossible to start again. If the request is active, its operation
// still completes. With checks, Free also states that the program will not wait for a request.
func (r *Request) Free() {
	if r == nil {
		return
	}
	r.retired = r.start != nil
	if r.active() && !r.freed && !r.collective {
		r.freed = true
		r.comm.process.active.Add(-1)
	}
	r.settle()
}
