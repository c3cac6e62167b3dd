package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A handed job was submitted to this peer by a p2prun. It has a listener, which is that p2prun or a later
// one, or it waits for a listener for a limited time:
//
//	followed --- removeListener ---> waiting --- addListener ---> followed
//	    |                               |
//	    +-- cancel, or removeListener --+-- away has passed, or the peer ends
//	        of a job that is not kept   v
//	                                  ended: the job is cancelled; no p2prun can attach
//
// A job with a listener runs to completion. Its result waits for acknowledgement, as output does.
type handed struct {
	events *submit.EventQueue
	end    context.CancelCauseFunc // cancels the job
	over   chan struct{}           // closed when the job has ended completely

	mu          sync.Mutex
	away        time.Duration // how long the job may wait for a listener
	hasListener bool
	ended       bool
	since       time.Time   // when the last listener was removed
	timer       *time.Timer // fires when away has passed
	times       int         // number of times that a listener was removed
}

var (
	errHasListener   = errors.New("another p2prun follows the job")
	errListenerEnded = errors.New("its p2prun has ended")
	errOver          = errors.New("the job is about to end")
)

// addListener registers a listener, if there is none. The caller must call removeListener afterwards.
func (h *handed) addListener() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.hasListener:
		return errHasListener
	case h.ended:
		return errOver
	}
	h.hasListener = true
	if h.timer != nil {
		h.timer.Stop()
	}
	return nil
}

// removeListener removes the listener. A kept job continues for a limited time, any other job ends.
func (h *handed) removeListener() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hasListener, h.since = false, time.Now()
	if !h.events.Kept() || h.ended {
		h.abandon(errListenerEnded)
		return
	}
	h.times++
	times := h.times
	h.timer = time.AfterFunc(h.away, func() { h.expire(times) }) // ends at once
}

// expire ends the job if no listener has attached since the last one was removed. times is the value of h.times
// at that removal, so the timer of an earlier removal has no effect.
func (h *handed) expire(times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.hasListener && h.times == times {
		h.abandon(fmt.Errorf("its p2prun has ended, and no p2prun has attached within %v (--away)", h.away))
	}
}

// abandon ends a job without a listener. h.mu is held.
func (h *handed) abandon(why error) {
	h.ended = true
	h.end(why)
	h.events.Close(why)
}

// cancel ends the job. A listener still receives the result.
func (h *handed) cancel(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.end(why)
	if !h.hasListener {
		h.abandon(why)
	}
}

// withoutListenerSince returns when the job lost its listener, or zero if it has one.
func (h *handed) withoutListenerSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hasListener {
		return time.Time{}
	}
	return h.since
}

// close releases the events that wait for a listener, and marks the job as over.
func (h *handed) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.timer != nil {
		h.timer.Stop()
	}
	h.end(nil)
	h.events.Close(errOver)
	close(h.over)
}
