package discovery

import (
	"context"
	"sync"
	"time"
)

// background counts the goroutines, stream handlers and calls of a Service, which Close waits for.
type background struct {
	ctx    context.Context // ended by stop
	cancel context.CancelFunc

	mu      sync.Mutex
	stopped bool
	wg      sync.WaitGroup // Add under mu
}

func newBackground(ctx context.Context) *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// run runs f in a goroutine until b.ctx ends.
func (b *background) run(f func(context.Context)) {
	if b.enter() {
		go func() {
			defer b.leave()
			f(b.ctx)
		}()
	}
}

// every calls f at the given interval until b.ctx ends.
func (b *background) every(interval time.Duration, f func(context.Context)) {
	b.run(func(ctx context.Context) {
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

// enter makes wait wait for a call of leave. It returns false after stop.
func (b *background) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.wg.Add(1)
	return true
}

func (b *background) leave() { b.wg.Done() }

// stop ends b.ctx. It returns false if it was called before.
func (b *background) stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.stopped = true
	b.cancel()
	return true
}

func (b *background) wait() { b.wg.Wait() }
