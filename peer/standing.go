package peer

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
)

// Standing is how a peer stands among others.
type Standing struct {
	Addresses    int               `json:"addresses"`     // that it announces
	Connected    int               `json:"connected"`     // peers
	Indirect     int               `json:"indirect"`      // of these, reached through a relay only
	Supernodes   int               `json:"supernodes"`    // others that are configured
	Met          int               `json:"met"`           // of these, connected
	Reachability Reachability      `json:"reachability"`  // public or private; auto: not known
	Relayed      bool              `json:"relayed"`       // others can reach it through a relay
	NAT          map[string]string `json:"nat,omitempty"` // of tcp and udp, where known: endpoint-independent, symmetric or none
	Ahead        []time.Duration   `json:"ahead"`         // its clock, in nanoseconds, of that of each peer that has answered
	Doubted      int               `json:"doubted"`       // peers whose offers do not hold by its clock
}

// askTimeout bounds how long others are asked for their time.
const askTimeout = 5 * time.Second

// standing asks other peers, so that there are clocks to compare with.
func (p *Peer) standing(ctx context.Context) Standing {
	s := Standing{
		Addresses:    len(p.Addresses()),
		Connected:    len(p.host.Network().Peers()),
		Reachability: Auto,
		NAT:          natKinds(p.sightings.all(), connection.OwnAddresses()),
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
	s.Relayed = slices.ContainsFunc(p.host.Addrs(), isRelayed)
	supernodes, _ := addrInfos(p.cfg.Supernodes) // Validate has passed them
	for _, info := range supernodes {
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

// clocks returns how far the clock here is ahead of those of others, and how many others have
// another time altogether.
func (p *Peer) clocks(ctx context.Context) (ahead []time.Duration, doubted int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, passed, _ := p.discovery.Candidates(ctx, discovery.Need{All: true, Busy: true}) // who answers late does not count
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
