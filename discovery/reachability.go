package discovery

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
)

// A reach is whether others can connect to this host directly, by what the host has
// found out or was told.
type reach struct {
	events event.Subscription
	told   atomic.Int32 // a network.Reachability, by the owner or AutoNAT 1
	found  atomic.Int32 // the same by AutoNAT 2, which asks for each address
}

// newReach begins to watch h. Both events repeat their last to newcomers.
func newReach(h host.Host) (*reach, error) {
	events, err := h.EventBus().Subscribe([]any{
		new(event.EvtLocalReachabilityChanged),  // by AutoNAT 1, or the owner's word
		new(event.EvtHostReachableAddrsChanged), // by AutoNAT 2
	}, eventbus.Name("p2pmpi reachability"))
	if err != nil {
		return nil, fmt.Errorf("watch the reachability: %w", err)
	}
	return &reach{events: events}, nil
}

// watch takes events in until ctx ends.
func (r *reach) watch(ctx context.Context) {
	defer r.events.Close()
	for {
		select {
		case e, ok := <-r.events.Out():
			if !ok {
				return
			}
			r.note(e)
		case <-ctx.Done():
			return
		}
	}
}

func (r *reach) note(e any) {
	switch e := e.(type) {
	case event.EvtLocalReachabilityChanged:
		r.told.Store(int32(e.Reachability))
	case event.EvtHostReachableAddrsChanged:
		found := network.ReachabilityUnknown
		switch {
		case len(e.Reachable) > 0:
			found = network.ReachabilityPublic
		case len(e.Unreachable) > 0 && len(e.Unknown) == 0:
			found = network.ReachabilityPrivate
		}
		r.found.Store(int32(found))
	}
}

func (r *reach) now() network.Reachability {
	if found := network.Reachability(r.found.Load()); found != network.ReachabilityUnknown {
		return found
	}
	return network.Reachability(r.told.Load())
}
