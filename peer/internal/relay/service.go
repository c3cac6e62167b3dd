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
	"github.com/rs/zerolog"
)

// reserveTimeout bounds one request for a reservation.
const reserveTimeout = 15 * time.Second

// Config says what a peer does.
type Config struct {
	Network string             // only its members are served
	Limits  Limits             // of the relay that this peer is
	Relays  []p2ppeer.AddrInfo // where to reserve, unless others reach this peer without
	Log     zerolog.Logger
}

// A Service is a peer's part in relaying: being a relay, and being reached through
// others.
type Service struct {
	host  host.Host
	log   zerolog.Logger
	cfg   Config
	relay *relay.Relay // nil if this peer is none

	emitter event.Emitter
	changes event.Subscription
	answers chan answer
	reached sync.Once
	first   chan struct{} // closed when the host has its first address through a relay

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// answer is what asking a relay came to.
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
	}
	if err := s.reserve(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// reserve begins to look after reservations.
func (s *Service) reserve() (err error) {
	s.changes, err = s.host.EventBus().Subscribe([]any{
		new(event.EvtPeerConnectednessChanged), new(event.EvtHostReachableAddrsChanged), new(event.EvtLocalAddressesUpdated),
	}, eventbus.Name("p2pmpi relays"), eventbus.BufSize(256))
	if err != nil {
		return fmt.Errorf("watch who connects: %w", err)
	}
	// The host advertises what its own AutoRelay would announce, which does not run.
	s.emitter, err = s.host.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful)
	if err != nil {
		return fmt.Errorf("announce addresses: %w", err)
	}
	s.running.Go(s.run) // ends with Close
	return nil
}

// Reserved returns when the host has an address through a relay, or with ctx's error.
func (s *Service) Reserved(ctx context.Context) error {
	select {
	case <-s.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run owns the plan.
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

// ask asks a relay for a reservation.
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
		s.log.Debug().Err(a.err).Stringer("relay", a.relay).Msg("no reservation")
		plan.refused(a.relay, now)
		return
	}
	s.log.Debug().Stringer("relay", a.relay).Time("until", a.until).Msg("reached through a relay")
	s.host.ConnManager().Protect(a.relay, "relay")
	plan.granted(a.relay, a.until, a.via, now)
}

func (s *Service) changed(plan *plan, e any) {
	switch e := e.(type) {
	case event.EvtPeerConnectednessChanged:
		if e.Connectedness == network.Connected {
			plan.met(e.Peer, time.Now())
		} else {
			plan.lost(e.Peer, time.Now())
		}
	case event.EvtHostReachableAddrsChanged:
		plan.reachable(len(e.Reachable) > 0)
	case event.EvtLocalAddressesUpdated:
		if slices.ContainsFunc(s.host.Addrs(), isCircuit) {
			s.reached.Do(func() { close(s.first) })
		}
	}
}

func isCircuit(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// tell announces the addresses if they are new.
func (s *Service) tell(circuits, told []ma.Multiaddr) []ma.Multiaddr {
	if slices.EqualFunc(circuits, told, ma.Multiaddr.Equal) {
		return told
	}
	if err := s.emitter.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: circuits}); err != nil {
		s.log.Error().Err(err).Msg("announce addresses")
	}
	return circuits
}

// Close ends the service. The host stays open, and circuits through it end.
func (s *Service) Close() error {
	s.cancel()
	s.running.Wait()
	s.host.RemoveStreamHandler(memberProtocol(s.cfg.Network))
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
