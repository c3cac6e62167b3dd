package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/internal/background"
)

// reviewEvery is the interval between checks for expired tokens and for a renewed token.
const reviewEvery = 2 * time.Second

// A Service maintains the memberships of connected peers. Its methods are safe for concurrent use.
type Service struct {
	host host.Host
	gate *Gate
	load func() (*Invitation, error)
	work *background.Work
}

// New starts the service of h, whose connections pass through gate. load returns this peer's current invitation,
// which may have been renewed. In an open network the service does not call load.
func New(h host.Host, gate *Gate, load func() (*Invitation, error)) *Service {
	s := &Service{host: h, gate: gate, load: load, work: background.New(context.Background())}
	h.SetStreamHandler(streamProtocol, s.serve)
	if !gate.Open() {
		s.work.Every(reviewEvery, func(context.Context) { s.review() })
	}
	return s
}

// serve handles a member's renewed token. In an open network, serve records that a member of a private network
// has refused this peer.
func (s *Service) serve(stream network.Stream) {
	defer stream.Close()
	peer := stream.Conn().RemotePeer()
	leave, err := s.gate.enter(peer, network.DirInbound)
	if err != nil {
		stream.Reset()
		return
	}
	defer leave()
	err = s.gate.answer(stream, s.host.ID(), peer)
	// The direction is that of the connection: Refused reports only peers that this one has dialled.
	s.gate.ended(peer, stream.Conn().Stat().Direction, err)
	if err != nil {
		stream.Reset()
	}
	if _, refusal := errors.AsType[*Refusal](err); refusal {
		s.drop(peer)
	}
}

// drop closes the connections to a peer that is not a member.
func (s *Service) drop(p p2ppeer.ID) {
	if s.gate.Open() {
		return // the other side closes the connections
	}
	if err := s.host.Network().ClosePeer(p); err != nil {
		s.gate.cfg.Log.Debug().Err(err).Stringer("peer", p).Msg("connections not closed")
	}
}

// review closes the connections of peers whose tokens have expired. It shows this peer's renewed token to
// all peers.
func (s *Service) review() {
	for _, p := range s.gate.expired(s.connected, time.Now()) {
		s.gate.cfg.Log.Warn().Stringer("peer", p).Msg("the token of a peer has expired; closed its connections")
		s.drop(p)
	}
	i, err := s.load()
	if err != nil {
		s.gate.cfg.Log.Debug().Err(err).Msg("token not reloaded")
		return
	}
	if s.gate.renew(i) {
		s.gate.cfg.Log.Info().Time("expires", i.Expires).Msg("the token was renewed")
		s.show()
	}
}

func (s *Service) connected(p p2ppeer.ID) bool { return len(s.host.Network().ConnsToPeer(p)) > 0 }

// parallel is the number of peers that are shown a renewed token at the same time.
const parallel = 16

// show shows the token to all connected peers.
func (s *Service) show() {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, p := range s.host.Network().Peers() {
		group.Go(func() error {
			if err := s.showTo(p); err != nil {
				s.gate.cfg.Log.Debug().Err(err).Stringer("peer", p).Msg("renewed token not sent")
			}
			return nil
		})
	}
	_ = group.Wait() // always nil; a disconnected peer gets the token when it reconnects
}

func (s *Service) showTo(p p2ppeer.ID) error {
	ctx, cancel := context.WithTimeout(s.work.Context(), exchangeTimeout)
	defer cancel()
	stream, err := s.host.NewStream(ctx, p, streamProtocol)
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	return s.gate.ask(stream, s.host.ID(), p)
}

// Close ends the service. The host stays open.
func (s *Service) Close() error {
	s.work.Stop()
	s.host.RemoveStreamHandler(streamProtocol)
	s.work.Wait()
	return nil
}
