package reunion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	manet "github.com/multiformats/go-multiaddr/net"
	msmux "github.com/multiformats/go-multistream"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
)

// Config is what a Service needs.
type Config struct {
	// Partners returns the peers that this one has running jobs with, and for how long
	// each may be silent.
	Partners func() map[p2ppeer.ID]time.Duration
	// Locate looks up where a peer is; nil: that cannot be found out.
	Locate func(context.Context, p2ppeer.ID) error
	// Back is told of each peer with which a connection was lost and there is one now. It must
	// return promptly.
	Back func(p2ppeer.ID)
	Log  zerolog.Logger
}

const (
	lookPeriod = time.Second
	// dialTimeout bounds one dial: a link that has just come back is not waited for as
	// long as TCP would try again.
	dialTimeout = 3 * time.Second
	// askTimeout bounds a question; long before, the watch has asked anew or dropped the
	// connection.
	askTimeout = time.Minute
)

// A Service keeps a host connected with its partners.
type Service struct {
	host   host.Host
	config Config

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wake    chan struct{} // a connection has come or gone
	notify  *network.NotifyBundle
	running sync.WaitGroup
	asking  map[string]context.CancelFunc // ends the last question on each connection; look's alone

	mu    sync.Mutex
	watch *watch
}

// New begins to look after the connections of h, until Close.
func New(h host.Host, c Config) *Service {
	s := newService(h, c)
	look := func(network.Network, network.Conn) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.notify = &network.NotifyBundle{ConnectedF: look, DisconnectedF: look}
	h.Network().Notify(s.notify)
	s.running.Go(s.run) // ends with ctx
	return s
}

func newService(h host.Host, c Config) *Service {
	s := &Service{host: h, config: c, wake: make(chan struct{}, 1), asking: make(map[string]context.CancelFunc), watch: newWatch()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close returns when nothing of the service runs any more.
func (s *Service) Close() error {
	s.host.Network().StopNotify(s.notify)
	s.cancel()
	s.running.Wait()
	return nil
}

func (s *Service) run() {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
		s.look(time.Now())
	}
}

// look has the watch decide, and does what it says.
func (s *Service) look(now time.Time) {
	partners := s.config.Partners()
	seen := make(map[p2ppeer.ID]sight, len(partners))
	conns := make(map[string]network.Conn)
	for id, bears := range partners {
		of := sight{bears: bears}
		for _, c := range s.host.Network().ConnsToPeer(id) {
			if !c.IsClosed() {
				conns[c.ID()] = c
				of.conns = append(of.conns, s.lineOf(c))
			}
		}
		seen[id] = of
	}
	s.mu.Lock()
	orders := s.watch.look(now, seen, connection.OwnAddresses())
	s.mu.Unlock()
	for id, end := range s.asking {
		if conns[id] == nil || slices.Contains(orders.ask, id) {
			end()
			delete(s.asking, id)
		}
	}
	for _, id := range orders.drop {
		c := conns[id]
		s.config.Log.Info().Stringer("peer", c.RemotePeer()).Stringer("address", c.RemoteMultiaddr()).Msg("a connection that does not work is dropped")
		s.running.Go(func() { _ = c.Close() }) // ends within libp2p's bound for a last word
	}
	for _, id := range orders.ask {
		// One question at a time on each: libp2p has few under way with a peer.
		ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
		s.asking[id] = cancel
		s.running.Go(func() { // ends with ctx
			defer cancel()
			s.ask(ctx, conns[id])
		})
	}
	for _, id := range orders.hops {
		s.running.Go(func() { s.askRelay(id) }) // ends within askAtMost
	}
	for _, id := range orders.dial {
		s.running.Go(func() { s.dial(id) }) // ends within dialTimeout
	}
	for _, id := range orders.back {
		s.config.Log.Info().Stringer("peer", id).Msg("connected again")
		s.config.Back(id)
	}
}

func (s *Service) lineOf(c network.Conn) line {
	l := line{id: c.ID(), local: localOf(c), arrived: arrived(c), relay: connection.RelayOf(c.RemoteMultiaddr())}
	if l.relay != "" {
		for _, b := range s.host.Network().ConnsToPeer(l.relay) {
			l.below += arrived(b)
		}
	}
	return l
}

// askRelay probes each connection with a relay, because it is unknown which of them carries a circuit.
func (s *Service) askRelay(id p2ppeer.ID) {
	ctx, cancel := context.WithTimeout(s.ctx, askAtMost)
	defer cancel()
	there := true
	for _, c := range s.host.Network().ConnsToPeer(id) {
		err := question(ctx, c)
		there = there && (err == nil || gotThere(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.heard(time.Now(), id, there)
}

// localOf returns this machine's address of a connection, if that is its own.
func localOf(c network.Conn) netip.Addr {
	ip, err := manet.ToIP(c.LocalMultiaddr())
	if err != nil { // through a relay
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// ask asks on one connection, until ctx ends.
func (s *Service) ask(ctx context.Context, c network.Conn) {
	err := question(ctx, c)
	if err != nil {
		s.config.Log.Debug().Err(err).Stringer("peer", c.RemotePeer()).Msg("no answer")
		if ctx.Err() != nil || c.IsClosed() || !settles(err) {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.answered(c.RemotePeer(), c.ID())
}

// settles reports whether a question that failed is over for the watch: the other end has
// heard of it, or it was never put. A failure of any other kind is no answer.
func settles(err error) bool {
	// The limit is the peer's, for all connections with it: it says nothing about this one.
	return gotThere(err) || errors.Is(err, network.ErrResourceLimitExceeded)
}

// gotThere reports whether a probe that failed has reached the other end.
func gotThere(err error) bool {
	// Who resets a stream has heard of it: libp2p answers two questions of a peer at a time.
	if reset, ok := errors.AsType[*network.StreamError](err); ok {
		return reset.Remote
	}
	_, other := errors.AsType[msmux.ErrNotSupported[protocol.ID]](err)
	return other || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// question has the other end of a connection send something back.
func question(ctx context.Context, c network.Conn) error {
	stream, err := c.NewStream(network.WithAllowLimitedConn(ctx, "question"))
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	defer stream.Reset() // nothing more is said on it
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
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
	_, err = io.ReadFull(stream, b[:]) // whatever it is
	return err
}

// dial tries once to reach a peer, and then looks up where it is.
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
	if s.config.Locate == nil {
		return
	}
	ctx, cancel = context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	if err := s.config.Locate(ctx, id); err != nil && ctx.Err() == nil {
		s.config.Log.Debug().Err(err).Stringer("peer", id).Msg("not found")
	}
}
