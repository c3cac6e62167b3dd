package punch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// A Puncher makes a host punch holes.
type Puncher struct {
	log     zerolog.Logger
	libp2p  *holepunch.Service
	metrics holepunch.MetricsTracer
	events  holepunch.EventTracer
	host    host.Host
	changes event.Subscription

	supernodes []p2ppeer.ID

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Puncher for the host that is started with its Option. The Puncher registers its metrics with reg
// and reports the result of each attempt to events. supernodes are the host's supernodes, which must be reachable
// without hole punching.
func New(supernodes []p2ppeer.AddrInfo, reg prometheus.Registerer, events holepunch.EventTracer, log zerolog.Logger) *Puncher {
	p := &Puncher{
		log:     log,
		events:  events,
		metrics: holepunch.NewMetricsTracer(holepunch.WithRegisterer(reg)),
	}
	for _, s := range supernodes {
		p.supernodes = append(p.supernodes, s.ID)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Option enables hole punching on a host. libp2p does not expose its hole punching service otherwise, so the
// Puncher takes a reference when libp2p creates the service.
func (p *Puncher) Option() libp2p.Option {
	take := func(s *holepunch.Service) error {
		p.libp2p = s
		return nil
	}
	return libp2p.EnableHolePunching(holepunch.WithMetricsAndEventTracer(p.metrics, p.events), take)
}

// Start starts further attempts for peers that are connected only by circuits. h is the host that was started
// with the Option.
func (p *Puncher) Start(h host.Host) (err error) {
	p.host = h
	p.changes, err = h.EventBus().Subscribe([]any{
		new(event.EvtPeerConnectednessChanged), new(event.EvtPeerIdentificationCompleted), new(event.EvtLocalAddressesUpdated),
	}, eventbus.Name("p2pmpi hole punching"), eventbus.BufSize(256))
	if err != nil {
		return fmt.Errorf("subscribe to connection events: %w", err)
	}
	p.running.Go(p.run) // ends with the subscription
	return nil
}

// run owns the retries.
func (p *Puncher) run() {
	retries := newRetries(p.ctx, p.try)
	defer retries.running.Wait()
	for e := range p.changes.Out() {
		switch e := e.(type) {
		case event.EvtPeerConnectednessChanged:
			retries.set(e.Peer, p.isRelayed(e.Peer))
		case event.EvtPeerIdentificationCompleted: // for every connection, also a second one
			retries.set(e.Peer, p.isRelayed(e.Peer))
		case event.EvtLocalAddressesUpdated: // earlier failures do not count any more
			retries.restart()
		}
	}
}

// isRelayed reports whether this peer should try to connect to another peer directly: they are connected only by
// circuits, and this peer has accepted one. libp2p requires that this side makes the attempts.
func (p *Puncher) isRelayed(id p2ppeer.ID) bool {
	conns := p.host.Network().ConnsToPeer(id)
	return !slices.ContainsFunc(conns, func(c network.Conn) bool { return !connection.IsCircuit(c.RemoteMultiaddr()) }) &&
		slices.ContainsFunc(conns, func(c network.Conn) bool { return c.Stat().Direction == network.DirInbound })
}

// try makes libp2p try to connect to a peer directly. The attempt is incomplete if libp2p already makes one, or
// if this host does not know a public address of its own yet.
func (p *Puncher) try(id p2ppeer.ID) (complete bool) {
	if !p.ready() {
		return false
	}
	err := p.libp2p.DirectConnect(id)
	p.log.Debug().Err(err).Stringer("peer", id).Msg("direct connection to a relayed peer attempted")
	return !errors.Is(err, holepunch.ErrHolePunchActive)
}

// ready reports whether the host knows a public address of its own. Without such an address, an attempt of libp2p
// would wait for one, even after libp2p is closed.
func (p *Puncher) ready() bool {
	return slices.Contains(p.host.Mux().Protocols(), holepunch.Protocol)
}

// Close ends all attempts. The host and its direct connections stay open.
func (p *Puncher) Close() error {
	p.cancel()
	var errs []error
	if p.changes != nil {
		errs = append(errs, p.changes.Close())
	}
	if p.libp2p != nil {
		errs = append(errs, p.libp2p.Close()) // ends pending attempts
	}
	p.running.Wait()
	return errors.Join(errs...)
}
