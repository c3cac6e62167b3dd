package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/sync/errgroup"
)

// advertiseRetry is the interval after which a failed announcement is retried. Failure is cheap: it means
// that the routing table is still empty.
const advertiseRetry = 10 * time.Second

// maxMet bounds how many peers an introduction connects to; those peers know the others.
const maxMet = 64

// tablePoll is the interval at which the routing table is polled for its first peer, since kad-dht sends
// no notification.
const tablePoll = 10 * time.Millisecond

// Introduced blocks until this peer has met a supernode or a known peer and, through it, the others; from
// then on it needs no supernode. Without supernodes, it returns when the known peers have been tried. If
// the current or next attempt reaches no peer, Introduced returns the cause for each supernode. Attempts
// continue in the background, and another call waits for the next one.
func (s *Service) Introduced(ctx context.Context) error {
	_, before, _, _ := s.intro.state()
	for {
		done, attempts, changed, err := s.intro.state()
		if done {
			return nil
		}
		if attempts > before {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for an introduction: %w", ctx.Err())
		case <-s.work.Context().Done():
			return fmt.Errorf("wait for an introduction: discovery closed: %w", s.work.Context().Err())
		}
	}
}

// introduce makes one attempt to be introduced, and records its outcome. A supernode that is still
// connected is enough. If no supernode can be reached, a connected known peer is enough as well. Without
// supernodes, it is enough that the known peers have been tried.
func (s *Service) introduce(ctx context.Context) (err error) {
	defer func() { s.intro.finished(err) }()
	if s.supernodeConnected() {
		return nil
	}
	if err = s.meetSupernodes(ctx); err == nil {
		s.findOthers(ctx)
		return nil
	}
	select {
	case <-s.connected.Tried():
	case <-ctx.Done():
	}
	if len(s.cfg.Supernodes) > 0 && s.connected.Alone() {
		return err
	}
	return nil
}

// supernodeConnected reports whether this peer has been introduced and is still connected to a supernode.
func (s *Service) supernodeConnected() bool {
	done, _, _, _ := s.intro.state()
	return done && slices.ContainsFunc(s.cfg.Supernodes, func(ai p2ppeer.AddrInfo) bool {
		return s.host.Network().Connectedness(ai.ID) == network.Connected
	})
}

// meetSupernodes connects to all supernodes at the same time and returns when one has been met.
func (s *Service) meetSupernodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.IntroduceTimeout)
	defer cancel()
	results := make(chan error, len(s.cfg.Supernodes))
	var wg sync.WaitGroup
	for _, ai := range s.cfg.Supernodes {
		wg.Go(func() { results <- supernodeError(ai, s.reachSupernode(ctx, ai)) })
	}
	defer wg.Wait()
	defer cancel() // does not wait for the remaining supernodes
	var causes []string
	for range s.cfg.Supernodes {
		err := <-results
		if err == nil {
			return nil
		}
		causes = append(causes, err.Error())
	}
	return fmt.Errorf("no supernode reached: %s", strings.Join(causes, "; "))
}

// reachSupernode connects to one supernode, and checks that the DHT has its first peer.
func (s *Service) reachSupernode(ctx context.Context, ai p2ppeer.AddrInfo) error {
	if err := s.reachServer(ctx, ai); err != nil {
		return err
	}
	if err := s.awaitTable(ctx); err != nil {
		return fmt.Errorf("it does not answer DHT queries: %w", err)
	}
	return nil
}

// reachServer connects to a peer that should serve a DHT. A peer that has just started to serve it tells this
// a moment later, since libp2p identifies itself with a copy of its protocols that it updates afterwards.
func (s *Service) reachServer(ctx context.Context, ai p2ppeer.AddrInfo) error {
	err := s.connected.Reach(ctx, ai)
	if !errors.Is(err, errNoSupernode) {
		return err
	}
	for begun := time.Now(); s.checkMember(ai.ID) != nil; {
		if time.Since(begun) > identifiedWithin {
			return err
		}
		select {
		case <-time.After(tablePoll):
		case <-ctx.Done():
			return err
		}
	}
	return s.connected.Reach(ctx, ai)
}

var errNoSupernode = errors.New("it answers, but is not a supernode")

// identifiedWithin is how long a connection may stay open while the protocols of its peer are unknown. A
// peer that refuses this one reports the reason within that time.
const identifiedWithin = 5 * time.Second

// checkMember returns nil if a connected peer belongs to this network and serves its DHT. If the peer's
// protocols are unknown, checkMember closes connections older than identifiedWithin; the next connection
// asks again.
func (s *Service) checkMember(id p2ppeer.ID) error {
	protocols, err := s.host.Peerstore().GetProtocols(id)
	if err != nil {
		return err
	}
	if len(protocols) > 0 {
		return checkNetwork(s.cfg.Network, protocols)
	}
	silent := errors.New("it answers, but has not identified itself: it may be overloaded")
	for _, c := range s.host.Network().ConnsToPeer(id) { // libp2p identifies each connection only once
		if time.Since(c.Stat().Opened) > identifiedWithin {
			silent = errors.Join(silent, c.Close())
		}
	}
	return silent
}

// checkNetwork looks for this network's DHT among a peer's protocols. If the peer belongs to another
// network, the error names that network.
func checkNetwork(name string, protocols []protocol.ID) error {
	for _, p := range protocols {
		rest, ours := strings.CutPrefix(string(p), "/p2pmpi/")
		other, isDHT := strings.CutSuffix(rest, kadSuffix)
		if !ours || !isDHT {
			continue
		}
		if other == name {
			return nil
		}
		return refuse(OtherNetwork, "it belongs to network %.80q, not %q", other, name)
	}
	return errNoSupernode
}

// findOthers finds the other peers, and makes this one known, through the peers in the routing table. It
// announces this peer first and then looks up the other announcements. So of two peers that do this at
// the same time, at least one finds the other, and connecting informs both. Failures here are harmless:
// the DHT refreshes itself and searches look again. Each step is bounded, because one frozen peer would
// delay a DHT lookup to its end.
func (s *Service) findOthers(ctx context.Context) {
	refreshed := s.dht.RefreshRoutingTable()
	if s.cfg.Offer != nil {
		if err := s.advertise(ctx); err != nil {
			s.cfg.Log.Debug().Err(err).Msg("not announced yet")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	s.connectFound(ctx)
	select {
	case err := <-refreshed:
		s.cfg.Log.Debug().Err(err).Int("peers", s.dht.RoutingTable().Size()).Msg("routing table refreshed")
	case <-ctx.Done():
	}
}

// advertise renews this peer's rendezvous record at the DHT peers nearest to it.
func (s *Service) advertise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	_, err := s.rendezvous.Advertise(ctx, namespace(s.cfg.Network))
	return err
}

// awaitTable waits until the routing table holds at least one peer.
func (s *Service) awaitTable(ctx context.Context) error {
	ticker := time.NewTicker(tablePoll)
	defer ticker.Stop()
	for s.dht.RoutingTable().Size() == 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// connectFound connects to the peers of the rendezvous until ctx ends. It skips peers that cannot be
// reached.
func (s *Service) connectFound(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(s.cfg.Parallel)
	met := 0
	for info := range s.found(ctx) {
		if info.ID == s.host.ID() {
			continue
		}
		if met++; met > maxMet {
			break
		}
		group.Go(func() error {
			if s.host.Connect(ctx, info) == nil {
				s.book.hint(info, time.Now())
			}
			return nil
		})
	}
	_ = group.Wait() // always nil: failures to connect are expected
}

// advertiseLoop announces this peer at regular intervals. Introductions and moves announce it as well.
func (s *Service) advertiseLoop(ctx context.Context) {
	wait := advertiseRetry
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = s.cfg.AdvertiseEvery
		if err := s.advertise(ctx); err != nil {
			wait = min(advertiseRetry, wait)
		}
	}
}
