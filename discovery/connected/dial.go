package connected

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/redial"
)

// startDue starts the attempts to connect that are due. At most one round and one introduction run at a time.
func (s *Service) startDue(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, info := range s.neighbours {
		s.running.Go(func() { s.reconnect(network.WithForceDirectDial(s.ctx, "a neighbour"), info) }) // ends within DialTimeout
	}
	s.neighbours = nil
	if s.supernodes.start(now) {
		s.running.Go(s.introduce) // ends with ctx
	}
	if !s.inRound && (s.roundDue || now.Sub(s.rounded) >= roundEvery) {
		due, meet := s.known.due(now, s.connected), s.meetNext
		s.inRound, s.rounded, s.meetNext = true, now, false
		s.roundDue = len(due) == atOnce             // more may be due
		s.running.Go(func() { s.round(due, meet) }) // ends with ctx
	}
}

// introduce makes one attempt to be introduced by a supernode.
func (s *Service) introduce() {
	err := s.config.Introduce(s.ctx)
	s.mu.Lock()
	wait := s.supernodes.ended(time.Now(), err == nil, rand.Float64())
	s.mu.Unlock()
	if err != nil {
		s.config.Log.Debug().Err(err).Dur("retry", wait).Msg("introduction failed")
	}
	time.AfterFunc(wait, func() { background.Notify(s.wake) })
}

// round tries known peers. It looks for other peers if meet is true, or if it reaches a peer that was
// unreachable or never met before.
func (s *Service) round(due []p2ppeer.AddrInfo, meet bool) {
	wasAlone := s.Alone()
	wereAway := make(chan bool, len(due))
	var group sync.WaitGroup
	for _, info := range due {
		group.Go(func() { wereAway <- s.reconnect(s.ctx, info) })
	}
	group.Wait()
	close(wereAway)
	for away := range wereAway {
		meet = meet || away
	}
	if meet || wasAlone && len(due) > 0 && !s.Alone() {
		s.config.Meet(s.ctx)
	}
	if err := s.save(); err != nil {
		s.config.Log.Warn().Err(err).Msg("known peers not saved; they must be found again after a restart")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inRound = false; !s.hasTried {
		s.hasTried = true
		close(s.tried)
	}
	background.Notify(s.wake)
}

// reconnect connects to a known peer and reports whether the peer was unreachable or unknown before.
func (s *Service) reconnect(ctx context.Context, info p2ppeer.AddrInfo) (wasAway bool) {
	ctx, cancel := context.WithTimeout(ctx, s.config.DialTimeout)
	defer cancel()
	s.mu.Lock()
	wasAway = s.known.wasUnreachable(info.ID)
	s.mu.Unlock()
	if err := s.Reach(ctx, info); err != nil {
		s.mu.Lock()
		s.known.failed(info.ID, time.Now())
		s.mu.Unlock()
		s.config.Log.Debug().Err(err).Stringer("peer", info.ID).Msg("known peer unreachable")
		return false
	}
	return wasAway
}

// Reach connects to a peer that should be a member of the network, and checks its membership. It clears
// libp2p's dial backoff, which would hide the cause of a failure; the caller spaces the attempts.
func (s *Service) Reach(ctx context.Context, info p2ppeer.AddrInfo) error {
	redial.Allow(s.host, info.ID)
	if err := s.host.Connect(ctx, info); err != nil {
		return err
	}
	if err := s.config.Member(info.ID); err != nil {
		return err
	}
	s.met(info, true)
	s.config.Reached(ctx, info.ID)
	return nil
}

// dial tries once to connect to a partner, and looks up its addresses on failure.
func (s *Service) dial(id p2ppeer.ID) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watch.dialled(time.Now(), id)
	}()
	redial.Allow(s.host, id)
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	if err := s.host.Connect(ctx, p2ppeer.AddrInfo{ID: id}); err == nil {
		return
	}
	if err := s.config.Locate(s.ctx, id); err != nil && s.ctx.Err() == nil {
		s.config.Log.Debug().Err(err).Stringer("peer", id).Msg("address not found")
	}
}
