package connected

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	msmux "github.com/multiformats/go-multistream"
)

const (
	// dialTimeout bounds one dial of a partner. It is shorter than TCP's retransmission intervals, so the
	// peer is dialled again soon after a link has recovered.
	dialTimeout = 3 * time.Second
	// probeTimeout bounds a probe. The watch repeats the probe or drops the connection much earlier.
	probeTimeout = time.Minute
)

// KeepPartners makes the service keep this peer connected to its partners. partners returns the other peers
// of running jobs, and the silence that is tolerated of each. back is called with a peer to which a
// connection was lost, once a connection exists. Both functions must return promptly.
func (s *Service) KeepPartners(partners func() map[p2ppeer.ID]time.Duration, back func(p2ppeer.ID)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partners, s.back = partners, back
}

// checkPartners passes the present state to the watch, and carries out its orders. own lists the addresses
// of this machine, and is empty if they are not known.
func (s *Service) checkPartners(now time.Time, own []netip.Addr) {
	s.mu.Lock()
	partners, back := s.partners, s.back
	s.mu.Unlock()
	seen, conns := s.observe(partners())
	s.mu.Lock()
	orders := s.watch.decide(now, seen, own)
	s.mu.Unlock()
	for id, end := range s.probes {
		if conns[id] == nil || slices.Contains(orders.probe, id) {
			end()
			delete(s.probes, id)
		}
	}
	for _, id := range orders.drop {
		s.drop(conns[id])
	}
	for _, id := range orders.probe {
		// Only one probe per connection, since libp2p allows few per peer.
		ctx, cancel := context.WithTimeout(s.ctx, probeTimeout)
		s.probes[id] = cancel
		s.running.Go(func() { // ends with ctx
			defer cancel()
			s.probe(ctx, conns[id])
		})
	}
	for _, id := range orders.relays {
		s.running.Go(func() { s.probeRelay(id) }) // ends within mostSilence
	}
	for _, id := range orders.dial {
		s.running.Go(func() { s.dial(id) }) // ends within dialTimeout
	}
	for _, id := range orders.back {
		s.config.Log.Info().Stringer("peer", id).Msg("reconnected")
		back(id)
	}
}

// observe returns the present state of the partners, and their connections by ID.
func (s *Service) observe(partners map[p2ppeer.ID]time.Duration) (map[p2ppeer.ID]partnerState, map[string]network.Conn) {
	seen := make(map[p2ppeer.ID]partnerState, len(partners))
	conns := make(map[string]network.Conn)
	for id, tolerates := range partners {
		of := partnerState{tolerates: tolerates}
		for _, c := range s.host.Network().ConnsToPeer(id) {
			if !c.IsClosed() && !s.isClosing(c) {
				conns[c.ID()] = c
				of.conns = append(of.conns, s.stateOf(c))
			}
		}
		seen[id] = of
	}
	return seen, conns
}

// drop closes a connection that does not work.
func (s *Service) drop(c network.Conn) {
	s.config.Log.Info().Stringer("peer", c.RemotePeer()).Stringer("address", c.RemoteMultiaddr()).Msg("dropped a connection that does not respond")
	s.mu.Lock()
	s.closing[c] = true
	s.mu.Unlock()
	s.running.Go(func() { // ends within libp2p's bound for closing
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.closing, c)
	})
}

// isClosing reports whether a connection was dropped. Until libp2p has closed the connection, it looks open.
func (s *Service) isClosing(c network.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing[c]
}

func (s *Service) stateOf(c network.Conn) connState {
	l := connState{id: c.ID(), local: localOf(c), arrived: arrived(c), relay: RelayOf(c.RemoteMultiaddr())}
	if l.relay != "" {
		for _, b := range s.host.Network().ConnsToPeer(l.relay) {
			l.below += arrived(b)
		}
	}
	return l
}

// probeRelay probes each connection to a relay, because it is unknown which of them carries a circuit.
func (s *Service) probeRelay(id p2ppeer.ID) {
	ctx, cancel := context.WithTimeout(s.ctx, mostSilence)
	defer cancel()
	there := true
	for _, c := range s.host.Network().ConnsToPeer(id) {
		err := sendPing(ctx, c)
		there = there && (err == nil || reachedOtherEnd(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.heard(time.Now(), id, there)
}

// RelayOf returns the relay that an address leads through, or "" if there is none.
func RelayOf(a ma.Multiaddr) p2ppeer.ID {
	relay, rest := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
	if len(rest) == 0 {
		return ""
	}
	_, id := p2ppeer.SplitAddr(relay)
	return id
}

// localOf returns this machine's address of a connection, and an invalid address for a circuit.
func localOf(c network.Conn) netip.Addr {
	ip, err := manet.ToIP(c.LocalMultiaddr())
	if err != nil { // through a relay
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// probe probes one connection, until ctx ends.
func (s *Service) probe(ctx context.Context, c network.Conn) {
	err := sendPing(ctx, c)
	if err != nil {
		s.config.Log.Debug().Err(err).Stringer("peer", c.RemotePeer()).Msg("no answer to a probe")
		if ctx.Err() != nil || c.IsClosed() || !countsAsAnswer(err) {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.answered(c.RemotePeer(), c.ID())
}

// countsAsAnswer reports whether the watch may take a failed probe as answered: the probe has reached the
// other end, or it was never sent. Any other failure is no answer.
func countsAsAnswer(err error) bool {
	// The limit is for all connections to the peer together, so reaching it shows nothing about this one.
	return reachedOtherEnd(err) || errors.Is(err, network.ErrResourceLimitExceeded)
}

// reachedOtherEnd reports whether a failed probe has reached the other end.
func reachedOtherEnd(err error) bool {
	// A reset by the other end shows that: libp2p answers only two probes per peer at a time.
	if reset, ok := errors.AsType[*network.StreamError](err); ok {
		return reset.Remote
	}
	_, other := errors.AsType[msmux.ErrNotSupported[protocol.ID]](err)
	return other || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func sendPing(ctx context.Context, c network.Conn) error {
	stream, err := c.NewStream(network.WithAllowLimitedConn(ctx, "probe"))
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	defer stream.Reset() // the stream carries only this ping
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	if err := stream.SetProtocol(ping.ID); err != nil {
		return err
	}
	if err := msmux.SelectProtoOrFail(protocol.ID(ping.ID), stream); err != nil {
		return err
	}
	var b [ping.PingSize]byte
	if _, err := stream.Write(b[:]); err != nil {
		return err
	}
	_, err = io.ReadFull(stream, b[:]) // any content
	return err
}
