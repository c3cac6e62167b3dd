package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A handed job was handed to this peer by a p2prun, and is listened to by that or another,
// or by nobody for a while:
//
//	listened --- hangUp ---> unheard --- listen ---> listened
//	    |                       |
//	    +-- cancel, or hangUp --+-- away is over, or the peer ends
//	        of a job that is    v
//	        not kept          ended: the job is cancelled, and nobody hears of it any more
//
// A job that is not unheard is followed to its result, which waits as output does.
type handed struct {
	audience *audience
	end      context.CancelCauseFunc // of the job
	over     chan struct{}           // closed when nothing is left of it

	mu       sync.Mutex
	away     time.Duration // that it may be unheard
	kept     bool          // it may be
	listened bool
	ended    bool
	since    time.Time   // that it is unheard
	patience *time.Timer // for as long
	times    int         // that it has become unheard
}

var (
	errListened = errors.New("another p2prun follows it")
	errHungUp   = errors.New("its p2prun has ended")
	errOver     = errors.New("it is about to end")
)

// take is the job's Sink.
func (h *handed) take(e job.Event, done func(error)) {
	if e.Kind == job.KeptEvent {
		h.mu.Lock()
		h.kept = true
		h.mu.Unlock()
	}
	h.audience.tell(e, done)
}

// listen takes the place of who listens, which hangUp has to follow.
func (h *handed) listen() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.listened:
		return errListened
	case h.ended:
		return errOver
	}
	h.listened = true
	if h.patience != nil {
		h.patience.Stop()
	}
	return nil
}

// hangUp lets the job go on for a while with nobody who listens, if it may.
func (h *handed) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listened, h.since = false, time.Now()
	if !h.kept || h.ended {
		h.abandon(errHungUp)
		return
	}
	h.times++
	times := h.times
	h.patience = time.AfterFunc(h.away, func() { h.runOut(times) }) // ends at once
}

// runOut ends the job if nobody has listened since it became unheard so many times.
func (h *handed) runOut(times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listened && h.times == times {
		h.abandon(fmt.Errorf("its p2prun has ended, and nobody has attached for %v, as --away says", h.away))
	}
}

// abandon ends a job to which nobody listens. mu is held.
func (h *handed) abandon(why error) {
	h.ended = true
	h.end(why)
	h.audience.close(why)
}

// cancel ends the job. Who listens hears how.
func (h *handed) cancel(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.end(why)
	if !h.listened {
		h.abandon(why)
	}
}

// unheard returns since when nobody listens; zero: somebody does.
func (h *handed) unheard() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listened {
		return time.Time{}
	}
	return h.since
}

// close ends all that waits for a listener.
func (h *handed) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.patience != nil {
		h.patience.Stop()
	}
	h.end(nil)
	h.audience.close(errOver)
	close(h.over)
}
