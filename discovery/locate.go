package discovery

import (
	"context"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Locate looks up where a peer is, by asking those near to it in the DHT. The host then knows
// the addresses that they have of it; it is an error if nobody has one. One that
// has moved is known to them when it has met one of them again.
func (s *Service) Locate(ctx context.Context, id p2ppeer.ID) error {
	if !s.enter() {
		return fmt.Errorf("locate peer %s: %w", id, context.Canceled)
	}
	defer s.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	known := len(s.host.Peerstore().Addrs(id))
	// Of one that does not answer at its old address, the lookup says that it is not found even
	// when somebody has told a new one.
	if _, err := s.dht.FindPeer(ctx, id); err != nil && len(s.host.Peerstore().Addrs(id)) <= known {
		return fmt.Errorf("locate peer %s: %w", id, err)
	}
	return nil
}
