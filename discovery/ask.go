package discovery

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
)

// offerProtocol carries alternating Requests and Responses on one stream.
const offerProtocol protocol.ID = "/p2pmpi/offer/1.0.0"

const (
	maxRequest   = 256                               // bytes of a Request
	maxResponse  = maxEnvelope + 64 + maxHearsay*128 // bytes of a Response
	echoes       = 2                                 // timed round trips; the shortest counts
	maxPerStream = 1 + echoes                        // requests answered on one stream
	serveTimeout = 5 * time.Second                   // bound on one whole stream
)

// offers requests the offers of other peers, and answers with the offer of this peer.
type offers struct {
	cfg         Config
	host        host.Host
	reach       *reach
	coordinates *coordinates
	locate      func(context.Context, p2ppeer.ID) error // finds the addresses of a peer
	work        *background.Work
	conduct     *misconduct.Log
}

// serve answers each request on one stream with the current offer or with an echo.
func (o *offers) serve(stream network.Stream) {
	defer stream.Close()
	stream.SetDeadline(time.Now().Add(serveTimeout))

	r, w := pbio.NewDelimitedReader(stream, maxRequest), pbio.NewDelimitedWriter(stream)
	for range maxPerStream {
		var req pb.Request
		if err := r.ReadMsg(&req); err != nil {
			o.conduct.Ended(stream.Conn().RemotePeer(), "offer request not received", err)
			return
		}
		resp, err := o.answer(&req, stream.Conn().RemotePeer())
		if err == nil {
			err = w.WriteMsg(resp)
		}
		if err != nil {
			o.cfg.Log.Debug().Err(err).Stringer("peer", stream.Conn().RemotePeer()).Msg("offer not sent")
			stream.Reset()
			return
		}
	}
}

// answer returns the Response to a request. A peer of another network learns only that the networks
// differ.
func (o *offers) answer(req *pb.Request, asker p2ppeer.ID) (*pb.Response, error) {
	if req.GetNetwork() != o.cfg.Network {
		return &pb.Response{Refusal: pb.Response_OTHER_NETWORK}, nil
	}
	if req.GetEcho() {
		return &pb.Response{}, nil
	}
	envelope, err := sealOffer(o.ownOffer(asker), o.host.Peerstore().PrivKey(o.host.ID()))
	if err != nil {
		return nil, err
	}
	resp := &pb.Response{Envelope: envelope}
	if req.GetHearsay() {
		resp.Hearsay = o.coordinates.hearsay()
	}
	return resp, nil
}

// ask connects to a peer if necessary, requests its offer and measures the round trip. It takes at most
// cfg.AskTimeout. If the peer is not a candidate, ask returns a *Refusal.
func (o *offers) ask(ctx context.Context, info p2ppeer.AddrInfo) (Candidate, *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.AskTimeout)
	defer cancel()
	// A relayed connection with limits has room for an offer.
	ctx = network.WithAllowLimitedConn(ctx, "offer")
	if len(info.Addrs) == 0 && len(o.host.Peerstore().Addrs(info.ID)) == 0 {
		_ = o.locate(ctx, info.ID) // without an address, Connect returns the error
	}
	if err := o.host.Connect(ctx, info); err != nil {
		return Candidate{}, &Refusal{Unreachable, err}
	}
	stream, err := o.host.NewStream(ctx, info.ID, offerProtocol)
	if err != nil {
		return Candidate{}, o.noStream(info.ID, err)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	offer, rtt, err := o.converse(stream)
	if err != nil {
		return Candidate{}, o.noOffer(info.ID, err)
	}
	info.Addrs = o.host.Peerstore().Addrs(info.ID)
	return Candidate{AddrInfo: info, Offer: offer, RTT: rtt}, nil
}

// noOffer returns why a peer that was asked for its offer is not a candidate. It logs a protocol violation
// of a peer that sent a malformed offer.
func (o *offers) noOffer(id p2ppeer.ID, err error) *Refusal {
	r, ok := errors.AsType[*Refusal](err)
	switch {
	case !ok:
		o.conduct.Ended(id, "offer not received", err)
		return o.noStream(id, err)
	case r.Reason == BadOffer:
		o.conduct.Note(id, "sent an invalid offer", err)
	}
	return r
}

// noStream distinguishes a peer that does not speak the offer protocol from one that does not answer.
// libp2p negotiates streams lazily, so only the first read may show that the protocol is unsupported.
func (o *offers) noStream(id p2ppeer.ID, err error) *Refusal {
	known, perr := o.host.Peerstore().GetProtocols(id)
	speaks, serr := o.host.Peerstore().SupportsProtocols(id, offerProtocol)
	if perr == nil && serr == nil && len(known) > 0 && len(speaks) == 0 {
		return &Refusal{OffersNothing, err}
	}
	return &Refusal{Silent, err}
}

// converse requests the offer, then measures the round-trip time on the stream. The first exchange is not
// timed, because it includes protocol negotiation and signing.
func (o *offers) converse(stream network.Stream) (Offer, time.Duration, error) {
	r, w := pbio.NewDelimitedReader(stream, maxResponse), pbio.NewDelimitedWriter(stream)
	from := stream.Conn().RemotePeer()
	var resp pb.Response
	if err := exchange(r, w, &pb.Request{Network: o.cfg.Network, Hearsay: o.coordinates.needsMore()}, &resp); err != nil {
		return Offer{}, 0, fmt.Errorf("ask %s for its offer: %w", from, err)
	}
	if resp.GetRefusal() == pb.Response_OTHER_NETWORK {
		return Offer{}, 0, refuse(OtherNetwork, "it belongs to a network other than %q", o.cfg.Network)
	}
	offer, err := openOffer(resp.GetEnvelope(), from, o.cfg.Network, time.Now())
	if err != nil {
		return Offer{}, 0, err
	}
	o.coordinates.applyHearsay(resp.GetHearsay())
	var best time.Duration
	for range echoes {
		start := time.Now()
		if err := exchange(r, w, &pb.Request{Network: o.cfg.Network, Echo: true}, new(pb.Response)); err != nil {
			return Offer{}, 0, fmt.Errorf("measure the round trip to %s: %w", from, err)
		}
		if rtt := time.Since(start); best == 0 || rtt < best {
			best = rtt
		}
	}
	o.coordinates.measured(from, offer.Position, best)
	return offer, best, nil
}

// exchange sends a request and reads the response.
func exchange(r pbio.Reader, w pbio.Writer, req, resp proto.Message) error {
	if err := w.WriteMsg(req); err != nil {
		return err
	}
	return r.ReadMsg(resp)
}

// offerOf requests a peer's offer. For the local peer it uses no network.
func (o *offers) offerOf(ctx context.Context, info p2ppeer.AddrInfo) (Candidate, *Refusal) {
	if info.ID != o.host.ID() {
		return o.ask(ctx, info)
	}
	if o.cfg.Offer == nil {
		return Candidate{}, &Refusal{Reason: OffersNothing}
	}
	offer := o.ownOffer(info.ID)
	if err := offer.valid(); err != nil {
		return Candidate{}, &Refusal{BadOffer, err}
	}
	return Candidate{AddrInfo: p2ppeer.AddrInfo{ID: info.ID, Addrs: o.host.Addrs()}, Offer: offer}, nil
}

func (o *offers) ownOffer(asker p2ppeer.ID) Offer {
	offer := o.cfg.Offer()
	if o.cfg.Machine != nil {
		offer.Machine = o.cfg.Machine(asker)
	}
	offer.Peer, offer.Network = o.host.ID(), o.cfg.Network
	offer.Protocol, offer.Release = version.Protocol, version.Release
	offer.OS, offer.Arch = runtime.GOOS, runtime.GOARCH
	offer.Reachability = o.reach.now()
	if here := o.coordinates.here(); checkCoordinate(here) == nil {
		offer.Position = here
	}
	offer.Issued = time.Now().Truncate(time.Millisecond)
	offer.Expires = offer.Issued.Add(offerLifetime)
	return offer
}
