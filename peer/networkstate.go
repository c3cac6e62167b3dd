package peer

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// NetworkState describes a peer's connections and reachability.
type NetworkState struct {
	Addresses    int               `json:"addresses"`     // announced by the peer
	Connected    int               `json:"connected"`     // number of connected peers
	Indirect     int               `json:"indirect"`      // of these, reached only through a relay
	Supernodes   int               `json:"supernodes"`    // configured supernodes other than this peer
	Met          int               `json:"met"`           // of these, connected
	Reachability Reachability      `json:"reachability"`  // public or private; auto if not known
	Relayed      bool              `json:"relayed"`       // true if others can reach it through a relay
	NAT          map[string]string `json:"nat,omitempty"` // by transport (tcp, udp): endpoint-independent, symmetric or none
	Ahead        []time.Duration   `json:"ahead"`         // lead over the clock of each peer that answered, nanoseconds
	Doubted      int               `json:"doubted"`       // number of peers whose offers are expired or in the future by its clock
}

// askTimeout bounds the time to ask other peers for their clocks.
const askTimeout = 5 * time.Second

// networkState returns the peer's network diagnostics. It queries other peers to compare clocks.
func (p *Peer) networkState(ctx context.Context) NetworkState {
	_, own, _ := connected.Interfaces() // none on an error
	s := NetworkState{
		Addresses:    len(p.Addresses()),
		Connected:    len(p.host.Network().Peers()),
		Reachability: Auto,
		NAT:          p.watcher.NATKinds(own),
	}
	switch p.discovery.Reachability() {
	case network.ReachabilityPublic:
		s.Reachability = Public
	case network.ReachabilityPrivate:
		s.Reachability = Private
	}
	for _, other := range p.host.Network().Peers() {
		if c, ok := connection.Best(p.host, other, nil); ok && c.Way == connection.Relayed {
			s.Indirect++
		}
	}
	s.Relayed = slices.ContainsFunc(p.host.Addrs(), connection.IsCircuit)
	for _, info := range p.cfg.Supernodes {
		if info.ID == p.ID() {
			continue
		}
		s.Supernodes++
		if p.host.Network().Connectedness(info.ID) != network.NotConnected {
			s.Met++
		}
	}
	s.Ahead, s.Doubted = p.clocks(ctx)
	return s
}

// clocks returns the lead of this clock over those of other peers, and the number of peers whose clocks
// differ too much to accept their offers.
func (p *Peer) clocks(ctx context.Context) (ahead []time.Duration, doubted int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, passed, _ := p.discovery.Candidates(ctx, discovery.Need{All: true, Busy: true}) // late answers do not count
	for _, c := range passed {
		if c.Reason == discovery.Expired {
			doubted++
		}
	}
	ahead = []time.Duration{}
	for _, k := range p.discovery.Peers() {
		ahead = append(ahead, k.Answered.Sub(k.Offer.Issued))
	}
	return ahead, doubted
}
