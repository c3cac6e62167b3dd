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

// A reach records whether other peers can connect to this host directly, as far as the host knows.
type reach struct {
	events event.Subscription
	told   atomic.Int32 // network.Reachability set by the owner or found by AutoNAT 1
	found  atomic.Int32 // network.Reachability found by AutoNAT 2, which checks each address
}

// newReach subscribes to h's reachability events. Both kinds repeat their last event to a new subscriber.
func newReach(h host.Host) (*reach, error) {
	events, err := h.EventBus().Subscribe([]any{
		new(event.EvtLocalReachabilityChanged),  // from AutoNAT 1 or the owner's setting
		new(event.EvtHostReachableAddrsChanged), // from AutoNAT 2
	}, eventbus.Name("p2pmpi reachability"))
	if err != nil {
		return nil, fmt.Errorf("watch the reachability: %w", err)
	}
	return &reach{events: events}, nil
}

// watch processes events until ctx ends.
func (r *reach) watch(ctx context.Context) {
	context.AfterFunc(ctx, func() { r.events.Close() })
	for e := range r.events.Out() { // until the subscription is closed
		r.note(e)
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
