package engine

import "runtime"

// The calls here inspect several requests at once. Their results depend on timing, so they are
// decisions.

// Waitany waits until one of the requests is done and returns its index.
func (e *Engine) Waitany(rs []*Request) (int, error) {
	i, err := e.decideFirst(rs, true)
	if err == nil && i < 0 {
		err = ErrMalformed
	}
	return i, err
}

// decideFirst decides which request is the first that is done. It returns its index, or -1 if there
// is none.
func (e *Engine) decideFirst(rs []*Request, waits bool) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.spares.waiter()
	values, err := e.decideAmong(w, rs, choice{kind: firstDone, waits: waits})
	e.spares.recycleWaiter(w) // values are valid until w is used again
	switch {
	case err != nil || len(values) == 0:
		return -1, err
	case len(values) > 1 || values[0] >= uint64(len(rs)):
		e.fail(ErrMalformed)
		return -1, ErrMalformed
	}
	return int(values[0]), nil
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
	i, err := e.decideFirst(rs, false)
	yieldUnless(i >= 0)
	return i, err
}

// yieldUnless lets other goroutines run after a test that found nothing. Otherwise, a program that
// polls would repeatedly delay the goroutines that read its messages by a whole time slice.
func yieldUnless(found bool) {
	if !found {
		runtime.Gosched()
	}
}

// Testsome returns the indices of the requests that are done.
func (e *Engine) Testsome(rs []*Request) ([]int, error) {
	return e.decideRequests(rs, choice{kind: allDone})
}

// Testall reports whether all requests are done. At a replica, some may not be done yet when Testall
// returns true, but they will be: the caller must call Wait for all of them.
func (e *Engine) Testall(rs []*Request) (bool, error) {
	e.mu.Lock()
	w := e.spares.waiter()
	values, err := e.decideAmong(w, rs, choice{kind: everyDone})
	all := err == nil && len(values) == 1
	e.spares.recycleWaiter(w)
	e.mu.Unlock()
	yieldUnless(all)
	return all, err
}

func indexPending(rs []*Request) int {
	for i, r := range rs {
		if !r.done {
			return i
		}
	}
	return -1
}
