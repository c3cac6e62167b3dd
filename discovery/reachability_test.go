package discovery

import (
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

func TestReachNotes(t *testing.T) {
	addrs := []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	var r reach
	for _, tt := range []struct {
		name  string
		event any
		want  network.Reachability
	}{
		{"set by the owner", event.EvtLocalReachabilityChanged{Reachability: network.ReachabilityPublic}, network.ReachabilityPublic},
		{"no address is reached", event.EvtHostReachableAddrsChanged{Unreachable: addrs}, network.ReachabilityPrivate},
		{"one of two addresses is reached", event.EvtHostReachableAddrsChanged{Reachable: addrs, Unreachable: addrs}, network.ReachabilityPublic},
		{"some addresses are unknown", event.EvtHostReachableAddrsChanged{Unreachable: addrs, Unknown: addrs}, network.ReachabilityPublic},
		{"the setting is removed", event.EvtLocalReachabilityChanged{}, network.ReachabilityUnknown},
	} {
		r.note(tt.event)
		if got := r.now(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestOfferContainsReachability waits until the offer contains the host's own reachability.
func TestOfferContainsReachability(t *testing.T) {
	s := newService(t, newHost(t, libp2p.ForceReachabilityPrivate()), testConfig())
	ctx := testContext(t)
	for {
		candidates, _, err := s.Candidates(ctx, Need{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(candidates) == 1 && candidates[0].Offer.Reachability == network.ReachabilityPrivate {
			return
		}
	}
}
