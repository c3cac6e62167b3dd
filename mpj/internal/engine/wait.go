package engine

import "sync"

// A waiter is where one goroutine of the program sleeps until something has
// changed. Waking it too often is harmless: it looks again.
type waiter struct{ changed chan struct{} }

var waiters = sync.Pool{New: func() any { return &waiter{make(chan struct{}, 1)} }}

func (w *waiter) wake() {
	if w == nil {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// await waits until done returns true, which it looks at whenever w is woken.
// e.mu is held, also while done runs, and released while await sleeps.
func (e *Engine) await(w *waiter, done func() bool) error {
	for !done() {
		if e.err != nil {
			return e.err
		}
		e.mu.Unlock()
		select {
		case <-w.changed:
		case <-e.stopped:
		}
		e.mu.Lock()
	}
	return nil
}
