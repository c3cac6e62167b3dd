package punch

import (
	"context"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// holes records the peers with which holes are being punched, and the ordinary dials to peers. Its methods
// are safe for concurrent use.
type holes struct {
	events holepunch.EventTracer // also receives every event

	mu       sync.Mutex
	punching map[p2ppeer.ID]int // number of attempts, since each side may make one
	dialled  map[p2ppeer.ID]map[*context.CancelFunc]struct{}
}

var _ holepunch.EventTracer = (*holes)(nil)

func newHoles(events holepunch.EventTracer) *holes {
	return &holes{
		events:   events,
		punching: make(map[p2ppeer.ID]int),
		dialled:  make(map[p2ppeer.ID]map[*context.CancelFunc]struct{}),
	}
}

// Trace implements holepunch.EventTracer.
func (h *holes) Trace(e *holepunch.Event) {
	switch e.Evt.(type) {
	case *holepunch.StartHolePunchEvt:
		h.begins(e.Remote)
	case *holepunch.EndHolePunchEvt:
		h.ends(e.Remote)
	}
	h.events.Trace(e)
}

func (h *holes) begins(id p2ppeer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.punching[id]++
	for cancel := range h.dialled[id] {
		(*cancel)()
	}
}

func (h *holes) ends(id p2ppeer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.punching[id]--; h.punching[id] <= 0 {
		delete(h.punching, id)
	}
}

// dials registers a dial, which is cancelled as soon as hole punching begins. The caller calls over after
// the dial.
func (h *holes) dials(id p2ppeer.ID, cancel context.CancelFunc) (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.punching[id] > 0 {
		cancel()
	}
	if h.dialled[id] == nil {
		h.dialled[id] = make(map[*context.CancelFunc]struct{})
	}
	h.dialled[id][&cancel] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.dialled[id], &cancel); len(h.dialled[id]) == 0 {
			delete(h.dialled, id)
		}
	}
}
