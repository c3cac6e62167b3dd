package punch

import (
	"context"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Pauses before attempts. The first pause is usually longer than libp2p's own attempt takes. Then the pauses
// double.
const (
	pauseMin = 5 * time.Second
	pauseMax = 10 * time.Minute
)

// maxTrying is the maximum number of attempts at a time.
const maxTrying = 4

// A retries repeats attempts, in one goroutine per peer that is connected only through relays. Only one goroutine
// may call set and restart.
type retries struct {
	attempt func(p2ppeer.ID) (complete bool) // an incomplete attempt is repeated soon
	slots   chan struct{}                    // one element for each attempt in progress
	cancel  map[p2ppeer.ID]context.CancelFunc

	ctx     context.Context // ends the retries
	running sync.WaitGroup
}

func newRetries(ctx context.Context, attempt func(p2ppeer.ID) (complete bool)) *retries {
	return &retries{
		attempt: attempt,
		slots:   make(chan struct{}, maxTrying),
		cancel:  make(map[p2ppeer.ID]context.CancelFunc),
		ctx:     ctx,
	}
}

// set starts the attempts for a peer that is connected only through relays, and ends them for any other peer.
func (r *retries) set(id p2ppeer.ID, relayed bool) {
	cancel, known := r.cancel[id]
	switch {
	case relayed && !known:
		r.start(id)
	case !relayed && known:
		cancel()
		delete(r.cancel, id)
	}
}

// restart makes all peers begin again with the shortest pause.
func (r *retries) restart() {
	for id, cancel := range r.cancel {
		cancel()
		r.start(id)
	}
}

func (r *retries) start(id p2ppeer.ID) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.cancel[id] = cancel
	r.running.Go(func() { r.run(ctx, id) }) // ends with ctx, after a pending attempt
}

func (r *retries) run(ctx context.Context, id p2ppeer.ID) {
	for wait, pause := pauseMin, pauseMin; ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		complete := r.attempt(id)
		<-r.slots
		wait = pauseMin
		if complete {
			pause = min(2*pause, pauseMax)
			wait = pause
		}
	}
}
