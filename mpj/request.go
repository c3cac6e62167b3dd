package mpj

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A Request is an operation in progress: a send, a receive or a collective. It is active until a
// Wait or Test has reported it complete. Wait and Test of an inactive or nil request return at once,
// with an empty Status and no error. The Status of an operation that received no message, such as a
// send, is also empty: Source is AnySource, Tag is AnyTag, and Size is 0.
//
// A persistent request, which SendInit or RecvInit returns, is active from each Start until it is
// reported complete.
//
// Only one goroutine at a time may use a request.
type Request struct {
	comm        *Comm
	request     *engine.Request // nil if persistent and never started
	op          string
	description string // with checks: op and its arguments
	receive     bool
	null        bool // whether dest or source is ProcNull
	collective  bool
	reported    bool
	freed       bool            // the program will not wait for it
	unpack      *core.Unpacking // for receives with a datatype that has gaps
	persists    *persistent     // nil unless persistent
}

// begun stores the engine's request in r, which has started.
func (r *Request) begun(request *engine.Request, err error) (*Request, error) {
	if err != nil {
		return nil, r.comm.wrap(r.op, err)
	}
	r.request, r.reported = request, false
	r.comm.world.active.Add(1)
	if r.comm.world.checks {
		r.note(cmp.Or(r.description, r.op))
	}
	return r, nil
}

func (r *Request) active() bool { return r != nil && r.request != nil && !r.reported }

// result waits for r and marks it as reported.
func (r *Request) result() (Status, error) {
	if !r.active() {
		return empty, nil
	}
	s, err := r.outcome()
	if r.reported = true; !r.freed {
		r.comm.world.active.Add(-1)
	}
	r.settle()
	return s, err
}

// outcome waits until r is complete and returns its outcome.
func (r *Request) outcome() (Status, error) {
	s, err := r.comm.engine().Wait(r.request)
	if err == nil {
		r.unpack.Finish(s.Size)
	}
	return r.status(s), r.comm.wrap(r.op, err)
}

// status converts the status of the engine to the status that Wait returns for r.
func (r *Request) status(s engineapi.Status) Status {
	switch {
	case !r.receive:
		return empty
	case r.null:
		return nothing
	case s.Cancelled:
		return Status{Source: AnySource, Tag: AnyTag, Cancelled: true}
	}
	return r.comm.statusOf(s)
}

// Wait waits until r is complete.
func (r *Request) Wait() (Status, error) { return r.result() }

// Test reports whether r is complete and, if so, returns what Wait would return.
func (r *Request) Test() (s Status, done bool, err error) {
	if r.active() {
		done, err := r.comm.engine().Testall([]*engine.Request{r.request})
		if err != nil || !done {
			return Status{}, false, r.comm.wrap("Test", err)
		}
	}
	s, err = r.result()
	return s, true, err
}

// GetStatus is like Test, but leaves r unchanged: an active request stays active, and Wait reports
// it later.
func (r *Request) GetStatus() (s Status, done bool, err error) {
	if !r.active() {
		s, err = r.result()
		return s, true, err
	}
	done, err = r.comm.engine().Testall([]*engine.Request{r.request})
	if err != nil || !done {
		return Status{}, false, r.comm.wrap("GetStatus", err)
	}
	s, err = r.outcome()
	return s, true, err
}

// Cancel cancels a receive that no message has matched yet. Wait for the request in any case: the
// field Cancelled of its Status reports whether it was cancelled. Sends are not cancelled, as MPI-4
// allows. With replicas, Cancel fails with ErrUnsupported, because a message may have reached one
// replica but not another.
func (r *Request) Cancel() error {
	if !r.active() {
		return nil
	}
	return r.comm.wrap("Cancel", r.comm.engine().Cancel(r.request))
}

// Waitall waits for all requests. It returns their statuses in order, and all their errors joined,
// each with the index of its request.
func Waitall(requests ...*Request) ([]Status, error) {
	statuses := make([]Status, len(requests))
	var failed error
	for i, r := range requests {
		s, err := r.result()
		statuses[i] = s
		failed = withRequest(failed, i, err)
	}
	return statuses, failed
}

// Waitany waits for one of the active requests and returns its index, or Undefined if no request is
// active.
func Waitany(requests ...*Request) (int, Status, error) {
	c, pending, index, err := pendingOf("Waitany", requests)
	if c == nil {
		return Undefined, empty, err
	}
	i, err := c.engine().Waitany(pending)
	if err != nil {
		return Undefined, Status{}, c.wrap("Waitany", err)
	}
	s, err := requests[index[i]].result()
	return index[i], s, err
}

// Waitsome waits for at least one of the active requests and returns the indices and statuses of all
// completed requests. It returns no indices if no request is active.
func Waitsome(requests ...*Request) ([]int, []Status, error) {
	c, pending, index, err := pendingOf("Waitsome", requests)
	if c == nil {
		return nil, nil, err
	}
	done, err := c.engine().Waitsome(pending)
	if err != nil {
		return nil, nil, c.wrap("Waitsome", err)
	}
	return resultsOf(requests, index, done)
}

// Testall reports whether all requests are complete, and if so, returns what Waitall would return.
func Testall(requests ...*Request) (statuses []Status, done bool, err error) {
	c, pending, _, err := pendingOf("Testall", requests)
	if err != nil {
		return nil, false, err
	}
	if c != nil {
		done, err := c.engine().Testall(pending)
		if err != nil || !done {
			return nil, false, c.wrap("Testall", err)
		}
	}
	statuses, err = Waitall(requests...)
	return statuses, true, err
}

// Testany is the nonblocking form of Waitany: done reports whether a request was complete or no
// request was active.
func Testany(requests ...*Request) (index int, s Status, done bool, err error) {
	c, pending, indices, err := pendingOf("Testany", requests)
	if c == nil {
		return Undefined, empty, err == nil, err
	}
	i, err := c.engine().Testany(pending)
	if err != nil || i < 0 {
		return Undefined, Status{}, false, c.wrap("Testany", err)
	}
	s, err = requests[indices[i]].result()
	return indices[i], s, true, err
}

// Testsome is the nonblocking form of Waitsome: it may return no indices.
func Testsome(requests ...*Request) ([]int, []Status, error) {
	c, pending, index, err := pendingOf("Testsome", requests)
	if c == nil {
		return nil, nil, err
	}
	done, err := c.engine().Testsome(pending)
	if err != nil {
		return nil, nil, c.wrap("Testsome", err)
	}
	return resultsOf(requests, index, done)
}

// pendingOf returns the active requests, the index of each, and the communicator of one of them. It
// returns an error for requests of several worlds, which exist with RunLocal.
func pendingOf(op string, requests []*Request) (c *Comm, pending []*engine.Request, index []int, err error) {
	for i, r := range requests {
		if !r.active() {
			continue
		}
		if c != nil && c.world != r.comm.world {
			return nil, nil, nil, c.failf(ErrRequest, op, "request %d belongs to rank %d of another world", i, r.comm.world.Rank())
		}
		c = r.comm
		pending = append(pending, r.request)
		index = append(index, i)
	}
	return c, pending, index, nil
}

// resultsOf reports the completed requests: done contains positions in index, which contains
// positions in requests.
func resultsOf(requests []*Request, index, done []int) ([]int, []Status, error) {
	var (
		indices  []int
		statuses []Status
		failed   error
	)
	for _, i := range done {
		s, err := requests[index[i]].result()
		indices = append(indices, index[i])
		statuses = append(statuses, s)
		failed = withRequest(failed, index[i], err)
	}
	return indices, statuses, failed
}

// withRequest adds err, the error of request i, to the errors so far.
func withRequest(failed error, i int, err error) error {
	if err == nil {
		return failed
	}
	return errors.Join(failed, fmt.Errorf("request %d: %w", i, err))
}
