package discovery

import (
	"context"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Locate looks up a peer's addresses in the DHT, at the peers whose keys are nearest to its key, and adds
// the addresses to the host's peerstore. It returns an error if no peer knows an address. After a move,
// these peers learn the new address when the peer has connected to one of them again.
func (s *Service) Locate(ctx context.Context, id p2ppeer.ID) error {
	if !s.work.Enter() {
		return fmt.Errorf("locate peer %s: %w", id, context.Canceled)
	}
	defer s.work.Leave()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	defer context.AfterFunc(s.work.Context(), cancel)()
	known := len(s.host.Peerstore().Addrs(id))
	// FindPeer fails if the peer does not answer at its old address, even if a peer has supplied a new
	// one.
	if _, err := s.dht.FindPeer(ctx, id); err != nil && len(s.host.Peerstore().Addrs(id)) <= known {
		return fmt.Errorf("locate peer %s: %w", id, err)
	}
	return nil
}
