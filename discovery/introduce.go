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

// advertiseRetry is how soon a failed announcement is tried again. Failing is
// cheap: it means that the routing table is still empty.
const advertiseRetry = 10 * time.Second

// maxMet bounds how many peers an introduction connects to. They know the others.
const maxMet = 64

// tablePoll is how often the routing table is looked at while it takes in the
// first peer; kad-dht tells nobody when it has.
const tablePoll = 10 * time.Millisecond

// Introduced blocks until this peer has met a supernode or somebody whom it has met before
// and, through them, the others: from then on no supernode is needed. Without supernodes it
// returns when those met before have been tried. When the attempt under way, or the next one,
// reaches nobody, it returns an *IntroductionError; attempts go on in the background, and
// calling again waits for the next.
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

// introduceLoop attempts to reach a supernode for ever: until introduced, and
// afterwards whenever none is connected, because a supernode that restarts
// knows nobody and its newcomers would otherwise form a network of their own.
func (s *Service) introduceLoop(ctx context.Context) {
	backoff := s.cfg.RetryMin
	moved := s.moves.next()
	for ctx.Err() == nil {
		err := s.introduce(ctx)
		s.intro.finished(err)
		wait := s.cfg.RetryMax
		if err != nil {
			s.log.Debug().Err(err).Dur("retry", backoff).Msg("not introduced")
			wait = backoff/2 + rand.N(backoff) // so that peers do not come back in step
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

// introduce is one attempt. A supernode that is still connected is enough, and so is
// somebody whom we have met before when no supernode can be reached.
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

// unlessMet returns err unless acquaintances have been met instead.
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

// acquainted reports whether we have been introduced and still hold a
// connection to a supernode.
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

// meetSupernodes connects to all supernodes at the same time; one is enough.
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
	defer cancel() // a silent second supernode is not waited for
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

// meet connects to one supernode and makes sure that it is of our network and
// that the DHT has a peer to begin with.
// Attempts are spaced by introduceLoop. A pause of libp2p's would also hide the cause
// of the failure.
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

// checkNetwork finds the DHT of our network among a peer's protocols, or
// names the network that it belongs to instead.
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

// meetOthers learns of the other peers, and makes itself known, through the
// peers in the routing table. First this peer announces itself and then looks
// who else did: of two that do so at the same time, one at least finds the
// other, and connecting tells both. What fails here is made up for later by
// the DHT's own refreshing and by searches. Each step is bounded, because a
// single frozen peer holds up a DHT lookup to its end.
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

// advertise renews our rendezvous record at the peers nearest to it.
func (s *Service) advertise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	_, err := s.rendezvous.Advertise(ctx, namespace(s.cfg.Network))
	return err
}

// awaitTable waits until the routing table holds somebody.
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

// connectFound connects to the peers of the rendezvous until ctx ends. Peers
// that are gone are passed over.
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
	_ = group.Wait() // always nil: failures are expected
}

// advertiseLoop announces this peer now and then; introductions and moves do so besides.
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
