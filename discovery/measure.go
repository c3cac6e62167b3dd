package discovery

import (
	"context"
	"math/rand/v2"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// measureEvery is the interval at which one connected peer is asked for its offer although no job needs
// it. So a peer that only donates also learns its position, and can state it. Coordinates become good
// after about a hundred measurements, or half an hour.
const measureEvery = 15 * time.Second

// measureLoop asks random connected peers, one at a time.
func (s *Service) measureLoop(ctx context.Context) {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.measure(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) measure(ctx context.Context) {
	var offering []p2ppeer.ID
	for _, id := range s.host.Network().Peers() {
		if speaks, err := s.host.Peerstore().SupportsProtocols(id, offerProtocol); err == nil && len(speaks) > 0 {
			offering = append(offering, id)
		}
	}
	if len(offering) == 0 {
		return
	}
	info := p2ppeer.AddrInfo{ID: offering[rand.IntN(len(offering))]}
	if c, refusal := s.ask(ctx, info); refusal == nil {
		s.book.answered(c, time.Now())
	}
}
