package engine

import "runtime"

// The calls here inspect several requests at once. Their results depend on timing, so they are
// decisions.

// Waitany waits until one of the requests is done and returns its index.
func (e *Engine) Waitany(rs []*Request) (int, error) {
	if e.protected == nil {
		return e.waitDirect(rs)
	}
	done, err := e.decideRequests(rs, choice{kind: firstDone, waits: true})
	if err != nil || len(done) != 1 {
		return -1, orMalformed(err)
	}
	return done[0], nil
}

// waitDirect is Waitany in an engine without a protocol.
func (e *Engine) waitDirect(rs []*Request) (int, error) {
	w := waiters.Get().(*waiter)
	e.mu.Lock()
	defer e.mu.Unlock()
	w.requests = rs
	for _, r := range rs {
		r.waiter = w
	}
	found := -1
	err := e.await(w, func() bool {
		if found = indexDone(rs); found < 0 && e.allUnmatchable(rs) {
			found = 0
		}
		return found >= 0
	})
	for _, r := range rs {
		r.waiter = nil
	}
	if err == nil {
		w.put()
	}
	return found, err
}

func indexDone(rs []*Request) int {
	for i, r := range rs {
		if r.done {
			return i
		}
	}
	return -1
}

// Waitsome waits until at least one of the requests is done and returns the indices of those that
// are done.
func (e *Engine) Waitsome(rs []*Request) ([]int, error) {
	return e.decideRequests(rs, choice{kind: allDone, waits: true})
}

// Testany returns the index of a request that is done, or -1.
func (e *Engine) Testany(rs []*Request) (int, error) {
	if e.protected == nil {
		i, err := e.look(func() int { return indexDone(rs) })
		yieldUnless(i >= 0)
		return i, err
	}
	done, err := e.decideRequests(rs, choice{kind: firstDone})
	if err != nil || len(done) == 0 {
		return -1, err
	}
	return done[0], nil
}

// yieldUnless lets other goroutines run after a test that found nothing. Otherwise, a program that
// polls would repeatedly delay the goroutines that read its messages by a whole time slice.
func yieldUnless(found bool) {
	if !found {
		runtime.Gosched()
	}
}

// look makes progress and returns the result of find.
func (e *Engine) look(find func() int) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return -1, e.err
	}
	e.conns.poller.advance()
	return find(), nil
}

// Testsome returns the indices of the requests that are done.
func (e *Engine) Testsome(rs []*Request) ([]int, error) {
	return e.decideRequests(rs, choice{kind: allDone})
}

// Testall reports whether all requests are done. At a replica, some may not be done yet when Testall
// returns true, but they will be: the caller must call Wait for all of them.
func (e *Engine) Testall(rs []*Request) (bool, error) {
	if e.protected == nil {
		pending, err := e.look(func() int { return indexPending(rs) })
		yieldUnless(pending < 0)
		return err == nil && pending < 0, err
	}
	done, err := e.decideRequests(rs, choice{kind: everyDone})
	return err == nil && len(done) == len(rs), err
}

func indexPending(rs []*Request) int {
	for i, r := range rs {
		if !r.done {
			return i
		}
	}
	return -1
}
