package hostcall

import (
	"context"
	"sync"
	"time"
)

// A background runs the calls to which the module gave a ticket.
type background struct {
	ctx      context.Context // ends when the process closes
	cancel   context.CancelFunc
	running  sync.WaitGroup
	finished chan finished

	mu      sync.Mutex
	bounded map[uint32]context.CancelFunc // calls that can be cancelled, by ticket
}

// finished is a call that is done.
type finished struct {
	ticket uint32
	err    error
	write  func(error) // writes the results of the call
}

func newBackground() *background {
	b := &background{finished: make(chan finished, 64), bounded: make(map[uint32]context.CancelFunc)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// start makes a call in a separate goroutine.
func (b *background) start(ticket uint32, call func() error, write func(error)) {
	b.running.Go(func() { // ends when the call returns, at the latest when the engine ends
		f := finished{ticket, call(), write}
		select {
		case b.finished <- f:
		case <-b.ctx.Done():
		}
	})
}

// next waits for a call to complete, and returns how long it waited. ok is false if no call completes
// within timeout.
func (b *background) next(timeout time.Duration) (f finished, waited time.Duration, ok bool) {
	select {
	case f = <-b.finished:
		return f, 0, true
	default:
	}
	begun := time.Now()
	timer := time.NewTimer(max(0, timeout))
	defer timer.Stop()
	select {
	case f = <-b.finished:
		ok = true
	case <-timer.C:
	}
	return f, time.Since(begun), ok
}

// bound returns a context for the call with the given ticket, which giveUp cancels.
func (b *background) bound(ticket uint32) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bounded[ticket] = cancel
	return ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.bounded, ticket)
		cancel()
	}
}

// giveUp cancels the context of a call.
func (b *background) giveUp(ticket uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cancel := b.bounded[ticket]; cancel != nil {
		cancel()
	}
}

// close returns when all calls have ended. The engine must have been closed before.
func (b *background) close() {
	b.cancel()
	b.running.Wait()
}
