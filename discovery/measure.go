package discovery

import (
	"context"
	"math/rand/v2"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// measureEvery is the interval at which one connected peer is asked for its offer although no job needs
// slots. So a peer that only donates also learns its position, and can state it. Coordinates become good
// after about a hundred measurements, or half an hour.
const measureEvery = 15 * time.Second

// measure asks a random connected peer that makes offers.
func (o *offers) measure(ctx context.Context, found *book) {
	var offering []p2ppeer.ID
	for _, id := range o.host.Network().Peers() {
		if speaks, err := o.host.Peerstore().SupportsProtocols(id, offerProtocol); err == nil && len(speaks) > 0 {
			offering = append(offering, id)
		}
	}
	if len(offering) == 0 {
		return
	}
	info := p2ppeer.AddrInfo{ID: offering[rand.IntN(len(offering))]}
	if c, refusal := o.ask(ctx, info); refusal == nil {
		found.answered(c, time.Now())
	}
}
