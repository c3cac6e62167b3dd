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

// Testall reports whether all requests are complete. Wait then returns the outcome of each at once.
func Testall(requests []*Request) (done bool, err error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return err == nil, err
	}
	done, err = p.comm.engine.Testall(p.active)
	return done, p.comm.wrap(err)
}

// Waitsome waits for at least one of the active requests and returns the indices of all completed
// requests. It returns no indices if no request is active. Wait then returns the outcome of each at
// once.
func Waitsome(requests []*Request) ([]int, error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return nil, err
	}
	return p.completed(p.comm.engine.Waitsome(p.active))
}

// Testsome is the nonblocking form of Waitsome: it may return no indices.
func Testsome(requests []*Request) ([]int, error) {
	p, err := pendingOf(requests)
	if p.comm == nil {
		return nil, err
	}
	return p.completed(p.comm.engine.Testsome(p.active))
}

// completed returns the indices in the call of the completed requests: done contains positions in
// p.active.
func (p *pending) completed(done []int, err error) ([]int, error) {
	if err != nil {
		return nil, p.comm.wrap(err)
	}
	for i, at := range done {
		done[i] = p.indices[at]
	}
	return done, nil
}
