package connection

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
)

const pings = 3 // per measurement; the fastest one counts

// RoundTrip returns the shortest of a few round trips to a peer. It returns false if the peer does not
// answer before ctx ends.
func RoundTrip(ctx context.Context, h host.Host, peer p2ppeer.ID) (best time.Duration, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	results := ping.Ping(ctx, h, peer)
	defer func() {
		cancel()
		for range results { // until the goroutine of Ping has ended
		}
	}()
	for range pings {
		r, more := <-results
		if !more || r.Error != nil {
			return best, ok
		}
		if !ok || r.RTT < best {
			best, ok = r.RTT, true
		}
	}
	return best, ok
}
