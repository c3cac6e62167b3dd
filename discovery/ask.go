package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
)

// offerProtocol carries alternating Requests and Responses on one stream.
const offerProtocol protocol.ID = "/p2pmpi/offer/1.0.0"

const (
	maxRequest   = 256                               // bytes of a Request
	maxResponse  = maxEnvelope + 64 + maxHearsay*128 // bytes of a Response
	echoes       = 2                                 // timed round trips; the shortest counts
	maxPerStream = 1 + echoes                        // requests answered on one stream
	serveTimeout = 5 * time.Second                   // for one whole stream
)

// serveOffer answers the requests on one stream: each with the current offer or with an echo.
func (s *Service) serveOffer(stream network.Stream) {
	if !s.enter() {
		stream.Reset()
		return
	}
	defer s.wg.Done()
	defer stream.Close()
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	defer stop()
	stream.SetDeadline(time.Now().Add(serveTimeout))

	r, w := pbio.NewDelimitedReader(stream, maxRequest), pbio.NewDelimitedWriter(stream)
	for range maxPerStream {
		var req pb.Request
		if err := r.ReadMsg(&req); err != nil {
			s.conduct.Ended(stream.Conn().RemotePeer(), "offer request not received", err)
			return
		}
		resp, err := s.answer(&req, stream.Conn().RemotePeer())
		if err == nil {
			err = w.WriteMsg(resp)
		}
		if err != nil {
			s.log.Debug().Err(err).Stringer("peer", stream.Conn().RemotePeer()).Msg("offer not sent")
			stream.Reset()
			return
		}
	}
}

// answer returns the Response to a request. A peer of another network learns only that the networks
// differ.
func (s *Service) answer(req *pb.Request, asker p2ppeer.ID) (*pb.Response, error) {
	if req.GetNetwork() != s.cfg.Network {
		return &pb.Response{Refusal: pb.Response_OTHER_NETWORK}, nil
	}
	if req.GetEcho() {
		return &pb.Response{}, nil
	}
	key := s.host.Peerstore().PrivKey(s.host.ID())
	if key == nil {
		return nil, errors.New("seal offer: the host has no private key")
	}
	envelope, err := Seal(s.ownOffer(asker), key)
	if err != nil {
		return nil, err
	}
	resp := &pb.Response{Envelope: envelope}
	if req.GetHearsay() {
		resp.Hearsay = s.coordinates.hearsay()
	}
	return resp, nil
}

// ask connects to a peer if necessary, requests its offer and measures the round trip. It takes at most
// cfg.AskTimeout. If the peer is no candidate, ask returns a *Refusal.
func (s *Service) ask(ctx context.Context, info p2ppeer.AddrInfo) (Candidate, *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AskTimeout)
	defer cancel()
	// A relayed connection with limits has room for an offer.
	ctx = network.WithAllowLimitedConn(ctx, "offer")
	if len(info.Addrs) == 0 && len(s.host.Peerstore().Addrs(info.ID)) == 0 {
		_ = s.Locate(ctx, info.ID) // without an address, Connect returns the error
	}
	if err := s.host.Connect(ctx, info); err != nil {
		return Candidate{}, &Refusal{Unreachable, err}
	}
	stream, err := s.host.NewStream(ctx, info.ID, offerProtocol)
	if err != nil {
		return Candidate{}, s.noStream(info.ID, err)
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	offer, rtt, err := s.converse(stream)
	if err != nil {
		return Candidate{}, s.noOffer(info.ID, err)
	}
	info.Addrs = s.host.Peerstore().Addrs(info.ID)
	return Candidate{AddrInfo: info, Offer: offer, RTT: rtt}, nil
}

// noOffer returns why a peer that was asked for its offer is no candidate. It logs a protocol violation
// of a peer that sent a malformed offer.
func (s *Service) noOffer(id p2ppeer.ID, err error) *Refusal {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case !ok:
		s.conduct.Ended(id, "offer not received", err)
		return s.noStream(id, err)
	case r.Reason == BadOffer:
		s.conduct.Note(id, "sent an invalid offer", err)
	}
	return r
}

// noStream tells a peer that does not speak the offer protocol from one that does not answer. libp2p
// negotiates streams lazily, so an unsupported protocol may show up only at the first read.
func (s *Service) noStream(id p2ppeer.ID, err error) *Refusal {
	known, perr := s.host.Peerstore().GetProtocols(id)
	speaks, serr := s.host.Peerstore().SupportsProtocols(id, offerProtocol)
	if perr == nil && serr == nil && len(known) > 0 && len(speaks) == 0 {
		return &Refusal{OffersNothing, err}
	}
	return &Refusal{Silent, err}
}

// converse requests the offer, then measures the round-trip time on the stream. The first exchange is not
// timed, because it includes protocol negotiation and signing.
func (s *Service) converse(stream network.Stream) (Offer, time.Duration, error) {
	r, w := pbio.NewDelimitedReader(stream, maxResponse), pbio.NewDelimitedWriter(stream)
	from := stream.Conn().RemotePeer()
	resp, err := exchange(r, w, &pb.Request{Network: s.cfg.Network, Hearsay: s.coordinates.needsMore()})
	if err != nil {
		return Offer{}, 0, fmt.Errorf("ask %s for its offer: %w", from, err)
	}
	if resp.GetRefusal() == pb.Response_OTHER_NETWORK {
		return Offer{}, 0, refuse(OtherNetwork, "it is not of network %q", s.cfg.Network)
	}
	offer, err := Open(resp.GetEnvelope(), from, s.cfg.Network, time.Now())
	if err != nil {
		return Offer{}, 0, err
	}
	s.coordinates.applyHearsay(resp.GetHearsay())
	var best time.Duration
	for range echoes {
		start := time.Now()
		if _, err := exchange(r, w, &pb.Request{Network: s.cfg.Network, Echo: true}); err != nil {
			return Offer{}, 0, fmt.Errorf("measure the round trip to %s: %w", from, err)
		}
		if rtt := time.Since(start); best == 0 || rtt < best {
			best = rtt
		}
	}
	s.coordinates.measured(from, offer.Position, best)
	return offer, best, nil
}

func exchange(r pbio.Reader, w pbio.Writer, req *pb.Request) (*pb.Response, error) {
	if err := w.WriteMsg(req); err != nil {
		return nil, err
	}
	var resp pb.Response
	if err := r.ReadMsg(&resp); err != nil {
		return nil, err
	}
	return &resp, nil
}
