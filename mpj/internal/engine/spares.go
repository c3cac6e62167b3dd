package engine

// A spares keeps requests and waiters for reuse, so that frequent calls do not allocate. It needs
// nothing from the engine. The engine's mutex guards it.
type spares struct {
	requests []*Request
	waiters  []*Waiter
	sent     Request // the request of every send that ended at once; done
}

// spare bounds the requests and waiters that are kept: enough for this number of goroutines in
// calls.
const spare = 16

// request returns a recycled request, or a new one.
func (s *spares) request() *Request {
	if last := len(s.requests) - 1; last >= 0 {
		r := s.requests[last]
		s.requests = s.requests[:last]
		return r
	}
	return new(Request)
}

// recycle takes back a request without any other references.
func (s *spares) recycle(r *Request) {
	*r = Request{}
	if len(s.requests) < spare {
		s.requests = append(s.requests, r)
	}
}

// waiter and recycleWaiter get and return a waiter like the pool of all engines, but faster.
func (s *spares) waiter() *Waiter {
	if last := len(s.waiters) - 1; last >= 0 {
		w := s.waiters[last]
		s.waiters = s.waiters[:last]
		return w
	}
	return NewWaiter()
}

func (s *spares) recycleWaiter(w *Waiter) {
	w.reset()
	if len(s.waiters) < spare {
		s.waiters = append(s.waiters, w)
	}
}
