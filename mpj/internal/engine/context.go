package engine

import (
	"context"
	"math/rand/v2"
)

// The calls here return early when a context.Context ends. Whether that happens depends on timing,
// so it is part of a decision: with replicas, the decider's context counts.

// Replicated reports whether other replicas take part in the decisions of this process.
func (e *Engine) Replicated() bool { return e.transport.Replicated() }

// wakes makes the end of ctx wake w, until the caller calls stop. e.mu is held at both calls.
func (e *Engine) wakes(ctx context.Context, w *Waiter) (stop func() bool) {
	live := true
	cancel := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if live {
			w.Wake()
		}
	})
	return func() bool {
		live = false
		return cancel()
	}
}

// WaitContext waits until r is done or ctx has ended, and reports which of them it was. If r is
// done, Wait returns its result; at a replica, Wait may have to wait for the result.
func (e *Engine) WaitContext(ctx context.Context, r *Request) (done bool, err error) {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	defer e.wakes(ctx, w)()
	r.waiter = w
	defer func() { r.waiter = nil }()
	w.choice = choice{kind: requestDone, waits: true, ends: ctx, request: r}
	values, err := e.transport.Decide(DecisionContext, w)
	return err == nil && len(values) == 1, err
}

// ProbeContext is like Probe, but returns false when ctx ends.
func (e *Engine) ProbeContext(ctx context.Context, inContext uint32, source int, tag int32) (Status, bool, error) {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	defer e.wakes(ctx, w)()
	b := e.mailbox(inContext)
	b.probes = append(b.probes, w)
	defer b.forgetProbe(w)
	w.choice = choice{kind: probedStatus, waits: true, ends: ctx, box: b, source: source, tag: tag}
	values, err := e.transport.Decide(inContext, w)
	if err != nil || len(values) == 0 {
		return Status{}, false, err
	}
	if len(values) != 3 {
		return Status{}, false, ErrMalformed
	}
	return statusFrom(values), true, nil
}

// RandomSeed returns a random number that is the same at all replicas, or 0 once the engine has
// stopped.
func (e *Engine) RandomSeed() uint64 {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	w.ChooseNumber(rand.Uint64)
	values, err := e.transport.Decide(DecisionContext, w)
	if err != nil || len(values) != 1 {
		return 0
	}
	return values[0]
}
