package background

import (
	"context"
	"sync"
	"time"
)

// Work counts the goroutines, stream handlers and calls of a service, whose Close waits for them.
type Work struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	stopped bool
	wg      sync.WaitGroup // Add under mu
}

// New returns a Work that ends with Stop. Its context also ends with ctx.
func New(ctx context.Context) *Work {
	w := &Work{}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// Context returns the context of the work.
func (w *Work) Context() context.Context { return w.ctx }

// Go runs f in a goroutine until the context ends.
func (w *Work) Go(f func(context.Context)) {
	if w.Enter() {
		go func() {
			defer w.Leave()
			f(w.ctx)
		}()
	}
}

// Every calls f at the given interval until the context ends.
func (w *Work) Every(interval time.Duration, f func(context.Context)) {
	w.Go(func(ctx context.Context) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Serve calls f, which handles the stream, and resets the stream when the context ends. After Stop, it only
// resets the stream.
func (w *Work) Serve(stream interface{ Reset() error }, f func()) {
	if !w.Enter() {
		_ = stream.Reset()
		return
	}
	defer w.Leave()
	defer context.AfterFunc(w.ctx, func() { _ = stream.Reset() })()
	f()
}

// Enter makes Wait wait for a call of Leave. It returns false after Stop.
func (w *Work) Enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.wg.Add(1)
	return true
}

// Leave ends what Enter began.
func (w *Work) Leave() { w.wg.Done() }

// Stop ends the context. It returns false if it was called before.
func (w *Work) Stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.stopped = true
	w.cancel()
	return true
}

// Wait returns when all work has ended.
func (w *Work) Wait() { w.wg.Wait() }

// Notify puts an element into c, unless c is full. It is for a channel that holds one element if there is something
// to do.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
