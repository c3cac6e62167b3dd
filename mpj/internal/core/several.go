package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"

// A pending contains the active requests among those of a call.
type pending struct {
	comm    *Comm // communicator of one of them, or nil if no request is active
	active  []*engine.Request
	indices []int // index of each in the call
}

// pendingOf returns the active requests. It returns an error for requests of several jobs, which
// exist with the ranks of a job in one process.
func pendingOf(requests []*Request) (p pending, err error) {
	for i, r := range requests {
		if !r.active() {
			continue
		}
		if p.comm != nil && p.comm.process != r.comm.process {
			e := p.comm.Failf(ErrRequest, "request %d belongs to rank %d of another world", i, r.comm.process.rank)
			e.Index = i
			return pending{}, e
		}
		p.comm = r.comm
		p.active = append(p.active, r.request)
		p.indices = append(p.indices, i)
	}
	return p, nil
}

// Waitany waits for one of the active requests and returns its index, or Undefined if no request is
// active.
func Waitany(requests []*Request) (int, Status, error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return Undefined, EmptyStatus, err
	}
	i, err := p.comm.engine.Waitany(p.active)
	if err != nil {
		return Undefined, Status{}, p.comm.wrap(err)
	}
	s, err := requests[p.indices[i]].Wait()
	return p.indices[i], s, err
}

// Testany is the nonblocking form of Waitany: done reports whether a request was complete or no
// request was active.
func Testany(requests []*Request) (index int, s Status, done bool, err error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return Undefined, EmptyStatus, err == nil, err
	}
	i, err := p.comm.engine.Testany(p.active)
	if err != nil || i < 0 {
		return Undefined, Status{}, false, p.comm.wrap(err)
	}
	s, err = requests[p.indices[i]].Wait()
	return p.indices[i], s, true, err
}

// Waitall waits for all requests, also if one fails. It stores the status of each in statuses, which
// has the length of requests or is nil. It returns nil if no request has failed, and otherwise the
// errors of all requests, in order; that of a request that has not failed is nil.
func Waitall(requests []*Request, statuses []Status) []error {
	var errs []error
	for i, r := range requests {
		s, err := r.Wait()
		if statuses != nil {
			statuses[i] = s
		}
		errs = withError(errs, len(requests), i, err)
	}
	return errs
}

// withError stores err as the ith of n errors in errs, which is nil as long as all errors are nil.
func withError(errs []error, n, i int, err error) []error {
	if err == nil {
		return errs
	}
	if errs == nil {
		errs = make([]error, n)
	}
	errs[i] = err
	return errs
}

// Testall reports whether all requests are complete, and changes none. Waitall then returns their
// outcomes at once.
func Testall(requests []*Request) (done bool, err error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return err == nil, err
	}
	done, err = p.comm.engine.Testall(p.active)
	return done, p.comm.wrap(err)
}

// A Completion contains the requests that Waitsome or Testsome has found complete.
type Completion struct {
	Indices  []int    // in the requests of the call
	Statuses []Status // of the request at each index
	Errs     []error  // of the request at each index; nil if no request has failed
}

// Waitsome waits for at least one of the active requests and returns all that are complete. It
// returns none if no request is active. err is the error of the call itself.
func Waitsome(requests []*Request) (done Completion, err error) {
	return some(requests, (*engine.Engine).Waitsome)
}

// Testsome is the nonblocking form of Waitsome: it may return no requests.
func Testsome(requests []*Request) (done Completion, err error) {
	return some(requests, (*engine.Engine).Testsome)
}

// some returns the outcomes of the active requests that find returns.
func some(requests []*Request, find func(*engine.Engine, []*engine.Request) ([]int, error)) (done Completion, err error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return done, err
	}
	if done.Indices, err = find(p.comm.engine, p.active); err != nil {
		return Completion{}, p.comm.wrap(err)
	}
	done.Statuses = make([]Status, len(done.Indices))
	for i, at := range done.Indices {
		done.Indices[i] = p.indices[at]
		s, err := requests[p.indices[at]].Wait()
		done.Statuses[i] = s
		done.Errs = withError(done.Errs, len(done.Indices), i, err)
	}
	return done, nil
}
