package discovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/internal/redial"
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
// the current or next attempt reaches no peer, Introduced returns an *IntroductionError. Attempts
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
		case <-s.ctx.Done():
			return fmt.Errorf("wait for an introduction: discovery closed: %w", s.ctx.Err())
		}
	}
}

// introduceLoop tries to reach a supernode until ctx ends: first until this peer is introduced,
// afterwards whenever no supernode is connected. A restarted supernode knows no peers, so without this
// its newcomers would form a separate network.
func (s *Service) introduceLoop(ctx context.Context) {
	backoff := s.cfg.RetryMin
	moved := s.moves.next()
	for ctx.Err() == nil {
		err := s.introduce(ctx)
		s.intro.finished(err)
		wait := s.cfg.RetryMax
		if err != nil {
			s.log.Debug().Err(err).Dur("retry", backoff).Msg("not introduced")
			wait = backoff/2 + rand.N(backoff) // jitter, so that peers do not retry in step
			backoff = min(2*backoff, s.cfg.RetryMax)
		} else {
			backoff = s.cfg.RetryMin
		}
		select {
		case <-time.After(wait):
		case <-moved:
			moved, backoff = s.moves.next(), s.cfg.RetryMin
		case <-ctx.Done():
		}
	}
}

// introduce makes one attempt. A supernode that is still connected is enough. If no supernode can be
// reached, a connected known peer is enough as well.
func (s *Service) introduce(ctx context.Context) error {
	if s.acquainted() {
		return nil
	}
	if err := s.meetSupernodes(ctx); err != nil {
		return s.unlessMet(ctx, err)
	}
	s.meetOthers(ctx)
	return nil
}

// unlessMet returns err unless a known peer is connected instead.
func (s *Service) unlessMet(ctx context.Context, err error) error {
	select {
	case <-s.intro.again:
	case <-ctx.Done():
	}
	if s.alone() {
		return err
	}
	s.log.Debug().Err(err).Msg("introduced by peers met before")
	return nil
}

// acquainted reports whether this peer has been introduced and is still connected to a supernode.
func (s *Service) acquainted() bool {
	done, _, _, _ := s.intro.state()
	if !done {
		return false
	}
	for _, ai := range s.cfg.Supernodes {
		if s.host.Network().Connectedness(ai.ID) == network.Connected {
			return true
		}
	}
	return false
}

// meetSupernodes connects to all supernodes at the same time and returns when one has been met.
func (s *Service) meetSupernodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.IntroduceTimeout)
	defer cancel()
	failures := make(chan SupernodeError, len(s.cfg.Supernodes))
	met := make(chan struct{}, len(s.cfg.Supernodes))
	var wg sync.WaitGroup
	for _, ai := range s.cfg.Supernodes {
		wg.Go(func() {
			if err := s.meet(ctx, ai); err != nil {
				failures <- SupernodeError{ai, err}
				return
			}
			met <- struct{}{}
		})
	}
	defer wg.Wait()
	defer cancel() // does not wait for the remaining supernodes
	failed := &IntroductionError{}
	for range s.cfg.Supernodes {
		select {
		case <-met:
			return nil
		case f := <-failures:
			failed.Failures = append(failed.Failures, f)
		}
	}
	return failed
}

// meet connects to one supernode and checks that it belongs to this network and that the DHT has its
// first peer. introduceLoop spaces the attempts. libp2p's own dial backoff is cleared because it would
// hide the cause of a failure.
func (s *Service) meet(ctx context.Context, ai p2ppeer.AddrInfo) error {
	redial.Allow(s.host, ai.ID)
	if err := s.host.Connect(ctx, ai); err != nil {
		return err
	}
	if err := s.checkMember(ai.ID); err != nil {
		return err
	}
	s.memory.met(s.addrsOf(ai), true)
	s.askForTwin(ctx, ai.ID)
	if err := s.awaitTable(ctx); err != nil {
		return fmt.Errorf("it answers no DHT query: %w", err)
	}
	return nil
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
	return errors.New("it answers, but is no peer that introduces others")
}

// meetOthers finds the other peers, and makes this one known, through the peers in the routing table. It
// announces this peer first and then looks up the other announcements. So of two peers that do this at
// the same time, at least one finds the other, and connecting informs both. Failures here are harmless:
// the DHT refreshes itself and searches look again. Each step is bounded, because one frozen peer would
// delay a DHT lookup to its end.
func (s *Service) meetOthers(ctx context.Context) {
	refreshed := s.dht.RefreshRoutingTable()
	if s.cfg.Offer != nil {
		if err := s.advertise(ctx); err != nil {
			s.log.Debug().Err(err).Msg("not announced yet")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	s.connectFound(ctx)
	select {
	case err := <-refreshed:
		s.log.Debug().Err(err).Int("peers", s.dht.RoutingTable().Size()).Msg("routing table refreshed")
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
