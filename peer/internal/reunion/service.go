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

// Config configures a Service.
type Config struct {
	// Partners returns the peers that this one has running jobs with, and the silence that is tolerated of
	// each peer.
	Partners func() map[p2ppeer.ID]time.Duration
	// Locate looks up a peer's addresses; nil if there is no lookup.
	Locate func(context.Context, p2ppeer.ID) error
	// Back is called for each peer to which a connection was lost and one exists now. It must return
	// promptly.
	Back func(p2ppeer.ID)
	Log  zerolog.Logger
}

const (
	lookPeriod = time.Second
	// dialTimeout bounds one dial. It is shorter than TCP's retransmission intervals, so the peer is
	// dialled again soon after a link has recovered.
	dialTimeout = 3 * time.Second
	// askTimeout bounds a probe. The watch repeats the probe or drops the connection long before.
	askTimeout = time.Minute
)

// A Service keeps a host connected to its partners.
type Service struct {
	host   host.Host
	config Config

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wake    chan struct{} // receives a token when a connection was opened or closed
	notify  *network.NotifyBundle
	running sync.WaitGroup
	asking  map[string]context.CancelFunc // cancels the last probe of each connection; used only by look

	mu    sync.Mutex
	watch *watch
}

// New starts a Service that maintains the connections of h until Close.
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

// Close returns when all goroutines of the service have ended.
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

// look passes the present state to the watch, and carries out its orders.
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
		s.running.Go(func() { _ = c.Close() }) // ends within libp2p's bound for closing
	}
	for _, id := range orders.ask {
		// Only one probe per connection, since libp2p allows few per peer.
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

// askRelay probes each connection to a relay, because it is unknown which of them carries a circuit.
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

// localOf returns this machine's address of a connection; it is invalid for a circuit.
func localOf(c network.Conn) netip.Addr {
	ip, err := manet.ToIP(c.LocalMultiaddr())
	if err != nil { // through a relay
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// ask probes one connection, until ctx ends.
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

// settles reports whether the watch may take a failed probe as answered: the probe has reached the other
// end, or it was never sent. Any other failure is no answer.
func settles(err error) bool {
	// The limit is for all connections to the peer together, so it shows nothing about this one.
	return gotThere(err) || errors.Is(err, network.ErrResourceLimitExceeded)
}

// gotThere reports whether a failed probe has reached the other end.
func gotThere(err error) bool {
	// A remote reset shows that it has: libp2p answers only two probes per peer at a time.
	if reset, ok := errors.AsType[*network.StreamError](err); ok {
		return reset.Remote
	}
	_, other := errors.AsType[msmux.ErrNotSupported[protocol.ID]](err)
	return other || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// question probes a connection with a ping.
func question(ctx context.Context, c network.Conn) error {
	stream, err := c.NewStream(network.WithAllowLimitedConn(ctx, "question"))
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	defer stream.Reset() // nothing else is sent on it
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
	_, err = io.ReadFull(stream, b[:]) // any content
	return err
}

// dial tries once to connect to a peer, and looks up its addresses on failure.
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
