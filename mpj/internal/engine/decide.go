package engine

import "errors"

// DecisionContext is the context of the points that belong to no communicator: those of requests
// and of the clock. Its mailbox never contains a message.
const DecisionContext = 0

// ErrMalformed is the error of an outcome that does not fit its call.
var ErrMalformed = errors.New("a determinant does not match its call: the replicas of this rank have diverged")

// orMalformed returns err, or ErrMalformed if err is nil.
func orMalformed(err error) error {
	if err == nil {
		err = ErrMalformed
	}
	return err
}

// decideRequests decides the outcome of a call about requests: the indices of completed requests.
func (e *Engine) decideRequests(rs []*Request, c choice) (indices []int, err error) {
	defer func() { yieldUnless(len(indices) > 0) }()
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	values, err := e.decideAmong(w, rs, c)
	if err != nil {
		return nil, err
	}
	indices = make([]int, len(values))
	for i, v := range values {
		if v >= uint64(len(rs)) {
			e.fail(ErrMalformed)
			return nil, ErrMalformed
		}
		indices[i] = int(v)
	}
	return indices, nil
}

// decideAmong decides the outcome of c, a choice among requests. The outcome is valid until w is used
// again. e.mu is held.
func (e *Engine) decideAmong(w *Waiter, rs []*Request, c choice) ([]uint64, error) {
	w.choice = c
	w.choice.requests = rs
	defer w.forget()
	if !c.waits {
		return e.transport.Decide(DecisionContext, w)
	}
	w.requests = rs
	for _, r := range rs {
		r.waiter = w
	}
	values, err := e.transport.Decide(DecisionContext, w)
	for _, r := range rs {
		r.waiter = nil
	}
	return values, err
}

// Wtime returns the seconds since an arbitrary time in the past. A new decider continues from the
// last time that the old decider returned. With replicas, Wtime returns a constant once the engine
// has stopped.
func (e *Engine) Wtime() float64 { return e.transport.Time() }
