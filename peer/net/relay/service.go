package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// reserveTimeout bounds one request for a reservation.
const reserveTimeout = 15 * time.Second

// Config configures a Service.
type Config struct {
	Network string             // the relay serves only members of this network
	Limits  Limits             // limits of this peer as a relay
	Public  bool               // the owner states that others can reach this peer
	Relays  []p2ppeer.AddrInfo // relays to reserve at, unless others can reach this peer directly
	Log     zerolog.Logger
}

// A Service runs both sides of relaying: this peer as a relay, and reservations at other relays.
type Service struct {
	host   host.Host
	log    zerolog.Logger
	cfg    Config
	relay  *relay.Relay // nil if this peer is not a relay
	isOpen bool         // announces that it relays for the whole network; used by New, then run, then Close

	emitter event.Emitter
	changes event.Subscription
	answers chan answer
	reached sync.Once
	first   chan struct{} // closed when the host has its first address through a relay

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// answer is the result of a request for a reservation.
type answer struct {
	relay p2ppeer.ID
	until time.Time
	via   []ma.Multiaddr
	err   error
}

// New starts the service on h, a host with the relay transport.
func New(h host.Host, cfg Config) (*Service, error) {
	s := &Service{host: h, log: cfg.Log, cfg: cfg, answers: make(chan answer), first: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	h.SetStreamHandler(memberProtocol(cfg.Network), func(s network.Stream) { s.Reset() })
	s.cfg.Relays = slices.DeleteFunc(slices.Clone(cfg.Relays), func(r p2ppeer.AddrInfo) bool { return r.ID == h.ID() })
	var err error
	if cfg.Limits.Peers > 0 {
		if s.relay, err = serve(h, membership{h, memberProtocol(cfg.Network)}, cfg.Limits); err != nil {
			s.Close()
			return nil, err
		}
		s.open(cfg.Public)
	}
	if err := s.reserve(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open announces to all connected peers whether this peer relays for the whole network.
func (s *Service) open(yes bool) {
	if s.relay == nil || yes == s.isOpen {
		return
	}
	s.isOpen = yes
	switch id := openProtocol(s.cfg.Network); {
	case yes:
		s.host.SetStreamHandler(id, func(s network.Stream) { s.Reset() })
	default:
		s.host.RemoveStreamHandler(id)
	}
}

// reserve starts to maintain reservations.
func (s *Service) reserve() (err error) {
	s.changes, err = s.host.EventBus().Subscribe([]any{
		new(event.EvtPeerConnectednessChanged), new(event.EvtHostReachableAddrsChanged), new(event.EvtLocalAddressesUpdated),
		new(event.EvtPeerIdentificationCompleted), new(event.EvtPeerProtocolsUpdated),
	}, eventbus.Name("p2pmpi relays"), eventbus.BufSize(256))
	if err != nil {
		return fmt.Errorf("subscribe to connection events: %w", err)
	}
	// The host advertises the addresses in events of this type. AutoRelay, which normally emits them, is off.
	s.emitter, err = s.host.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful)
	if err != nil {
		return fmt.Errorf("announce addresses: %w", err)
	}
	s.running.Go(s.run) // ends with Close
	return nil
}

// Reserved returns nil when the host has an address through a relay, or ctx's error.
func (s *Service) Reserved(ctx context.Context) error {
	select {
	case <-s.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run maintains the reservations until Close.
func (s *Service) run() {
	plan := newPlan(s.cfg.Relays)
	var asking sync.WaitGroup
	defer asking.Wait()
	var told []ma.Multiaddr
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.ctx.Err() == nil {
		for _, r := range plan.due(time.Now()) {
			asking.Go(func() { s.ask(r) }) // ends within reserveTimeout, or with Close
		}
		told = s.tell(plan.circuits(), told)
		if next, ok := plan.next(); ok {
			timer.Reset(time.Until(next))
		}
		select {
		case a := <-s.answers:
			s.note(plan, a)
		case e := <-s.changes.Out():
			s.changed(plan, e)
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
}

// ask requests a reservation at a relay.
func (s *Service) ask(r p2ppeer.AddrInfo) {
	ctx, cancel := context.WithTimeout(s.ctx, reserveTimeout)
	defer cancel()
	a := answer{relay: r.ID}
	rsvp, err := client.Reserve(ctx, s.host, r)
	if err == nil {
		a.until, a.via = rsvp.Expiration, rsvp.Addrs
	}
	a.err = err
	select {
	case s.answers <- a:
	case <-s.ctx.Done():
	}
}

func (s *Service) note(plan *plan, a answer) {
	now := time.Now()
	if a.err != nil {
		s.log.Debug().Err(a.err).Stringer("relay", a.relay).Msg("relay reservation failed")
		plan.refused(a.relay, now)
		return
	}
	s.log.Debug().Stringer("relay", a.relay).Time("until", a.until).Msg("relay reservation made")
	s.host.ConnManager().Protect(a.relay, tag)
	plan.granted(a.relay, a.until, a.via, now)
}

func (s *Service) changed(plan *plan, e any) {
	switch e := e.(type) {
	case event.EvtPeerConnectednessChanged:
		if e.Connectedness == network.Connected {
			plan.met(e.Peer, time.Now())
		} else {
			s.host.ConnManager().Unprotect(e.Peer, tag)
			plan.lost(e.Peer, time.Now())
		}
	case event.EvtPeerIdentificationCompleted:
		s.meet(plan, e.Peer)
	case event.EvtPeerProtocolsUpdated:
		s.meet(plan, e.Peer)
	case event.EvtHostReachableAddrsChanged:
		reachable := len(e.Reachable) > 0
		plan.reachable(reachable)
		s.open(reachable || s.cfg.Public)
	case event.EvtLocalAddressesUpdated:
		if slices.ContainsFunc(s.host.Addrs(), connection.IsCircuit) {
			s.reached.Do(func() { close(s.first) })
		}
	}
}

// tag protects the connection to a relay from trimming, since the reservation ends with the connection.
const tag = "relay"

// meet records whether a connected peer relays for the whole network.
func (s *Service) meet(plan *plan, id p2ppeer.ID) {
	if s.cfg.Public {
		return
	}
	open, err := s.host.Peerstore().SupportsProtocols(id, openProtocol(s.cfg.Network))
	if err != nil || len(open) == 0 {
		plan.forget(id)
		return
	}
	plan.find(p2ppeer.AddrInfo{ID: id, Addrs: foundAt(s.host.Peerstore().Addrs(id))})
}

// foundAt selects the addresses by which a found relay is reached: those that look public, or else all
// addresses that do not lead through another relay.
func foundAt(addrs []ma.Multiaddr) []ma.Multiaddr {
	direct := slices.DeleteFunc(slices.Clone(addrs), connection.IsCircuit)
	public := slices.DeleteFunc(slices.Clone(direct), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
	if len(public) > 0 {
		return public
	}
	return direct
}

// tell announces the addresses if they have changed.
func (s *Service) tell(circuits, told []ma.Multiaddr) []ma.Multiaddr {
	if slices.EqualFunc(circuits, told, ma.Multiaddr.Equal) {
		return told
	}
	if err := s.emitter.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: circuits}); err != nil {
		s.log.Error().Err(err).Msg("addresses not announced")
	}
	return circuits
}

// Close ends the service, and with it the circuits through this peer. The host stays open.
func (s *Service) Close() error {
	s.cancel()
	s.running.Wait()
	s.host.RemoveStreamHandler(memberProtocol(s.cfg.Network))
	s.open(false)
	var errs []error
	if s.relay != nil {
		errs = append(errs, s.relay.Close())
	}
	if s.changes != nil {
		errs = append(errs, s.changes.Close())
	}
	if s.emitter != nil {
		errs = append(errs, s.emitter.Close())
	}
	return errors.Join(errs...)
}
