package connected

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/background"
)

// Config configures a Service.
type Config struct {
	// PeersFile is the file that keeps the known peers. If PeersFile is empty, they are not kept.
	PeersFile string
	// MayDial reports whether an address that other peers have given may be remembered. If MayDial is nil,
	// all addresses may be.
	MayDial func(p2ppeer.ID, ma.Multiaddr) bool
	// Member returns nil if a connected peer belongs to the network and can introduce others.
	Member func(p2ppeer.ID) error
	// Reached is called after each successful dial of a known peer or supernode.
	Reached func(context.Context, p2ppeer.ID)
	// Meet finds more peers through the connected ones. It is called after this machine has moved, and
	// after reaching a peer that may know others.
	Meet func(context.Context)
	// Introduce makes sure that a supernode is connected. It is called at intervals: RetryMax after a
	// success, a backoff between RetryMin and RetryMax after a failure.
	Introduce          func(context.Context) error
	RetryMin, RetryMax time.Duration
	// Locate looks up the addresses of a partner, for a bounded time.
	Locate func(context.Context, p2ppeer.ID) error
	// DialTimeout bounds one attempt to reach a known peer.
	DialTimeout time.Duration
	Log         zerolog.Logger
}

// roundEvery is the interval between rounds of reconnect attempts.
const roundEvery = 5 * time.Second

// A Service keeps a host connected. Its methods are safe for concurrent use.
type Service struct {
	host   host.Host
	config Config

	ctx     context.Context // ends with the context of New, or Close
	cancel  context.CancelFunc
	wake    chan struct{} // holds an element if a connection or a due time may have changed
	moved   chan struct{} // holds an element if this machine has moved
	tried   chan struct{} // closed after the first round
	events  event.Subscription
	notify  *network.NotifyBundle
	running sync.WaitGroup

	moveDetector moveDetector                  // used only by run
	probes       map[string]context.CancelFunc // cancels the last probe of each connection; used only by run

	mu         sync.Mutex
	known      *knownPeers
	saved      int // value of known.changes at the last save
	supernodes schedule
	neighbours []p2ppeer.AddrInfo // peers of the LAN to connect to directly
	inRound    bool               // a round is in progress
	hasTried   bool               // a round has ended
	rounded    time.Time          // start of the last round
	roundDue   bool               // the next round starts at once
	meetNext   bool               // the next round looks for other peers
	watch      *watch
	closing    map[network.Conn]bool               // dropped connections that libp2p is still closing
	partners   func() map[p2ppeer.ID]time.Duration // see KeepPartners
	back       func(p2ppeer.ID)
}

// New returns a Service for h. The service begins its work with Start and ends it with ctx or Close.
func New(ctx context.Context, h host.Host, c Config) (*Service, error) {
	known, err := recall(c.PeersFile, time.Now())
	if err != nil {
		return nil, err
	}
	events, err := h.EventBus().Subscribe([]any{
		new(event.EvtPeerIdentificationCompleted),
		new(event.EvtLocalAddressesUpdated),
	}, eventbus.Name("p2pmpi connected"))
	if err != nil {
		return nil, fmt.Errorf("watch the connections: %w", err)
	}
	s := &Service{
		host: h, config: c, known: known, events: events,
		wake: make(chan struct{}, 1), moved: make(chan struct{}, 1), tried: make(chan struct{}),
		probes:     make(map[string]context.CancelFunc),
		supernodes: schedule{least: c.RetryMin, most: c.RetryMax, pause: c.RetryMin},
		watch:      newWatch(),
		closing:    make(map[network.Conn]bool),
		partners:   func() map[p2ppeer.ID]time.Duration { return nil },
	}
	known.restoring = s.watch.restoring
	look := func(network.Network, network.Conn) { background.Notify(s.wake) }
	s.notify = &network.NotifyBundle{ConnectedF: look, DisconnectedF: look}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// Start starts the work of the service.
func (s *Service) Start() {
	s.host.Network().Notify(s.notify)
	s.running.Go(s.run)       // ends with ctx
	s.running.Go(s.watchHost) // ends with events
}

// Close returns when all goroutines of the service have ended and the known peers are saved.
func (s *Service) Close() error {
	s.host.Network().StopNotify(s.notify)
	s.cancel()
	s.events.Close()
	s.running.Wait()
	return s.save()
}

// Alone reports whether no known peer is connected.
func (s *Service) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.known.all {
		if s.connected(id) {
			return false
		}
	}
	return true
}

// Tried returns a channel that is closed once the known peers that were due at the start have been tried.
func (s *Service) Tried() <-chan struct{} { return s.tried }

// Moved returns a channel that receives an element when this machine has moved. It has one reader.
func (s *Service) Moved() <-chan struct{} { return s.moved }

// Heard records that mDNS has found a peer. If the peer is connected through a relay, the service tries to
// connect to it directly. Heard never blocks.
func (s *Service) Heard(info p2ppeer.AddrInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.host.Network().Connectedness(info.ID) {
	case network.Connected:
		return
	case network.Limited: // it may have been connected before mDNS found it
		s.neighbours = append(s.neighbours, info)
	default:
		s.known.heard(info)
		s.roundDue = true
	}
	background.Notify(s.wake)
}

// connected reports whether a connection to a peer is open, direct or relayed.
func (s *Service) connected(id p2ppeer.ID) bool {
	c := s.host.Network().Connectedness(id)
	return c == network.Connected || c == network.Limited
}

// run checks this machine and the partners' connections at intervals. It also checks the connections when one was
// opened or closed.
func (s *Service) run() {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	s.check(time.Now())
	for {
		s.startDue(time.Now())
		select {
		case <-ticker.C:
			s.check(time.Now())
		case <-s.wake:
			s.checkPartners(time.Now(), nil)
		case <-s.ctx.Done():
			return
		}
	}
}

// check checks the partners' connections and whether this machine has moved. After a move, it drops all
// connections from addresses that the machine has lost: until they time out, their peers would count as
// connected. The host learns of new addresses up to a minute later; they are announced then.
func (s *Service) check(now time.Time) {
	usable, own, err := Interfaces()
	if err != nil { // the next check detects a move
		usable, own = s.moveDetector.usable, nil
	}
	s.checkPartners(now, own)
	why := s.moveDetector.observe(now, usable)
	if why == "" {
		return
	}
	s.config.Log.Info().Str("why", why).Msg("the machine's addresses have changed, or it was asleep: reconnecting to its peers")
	for _, c := range s.host.Network().Conns() {
		if s.watch.lostAddrs[localOf(c)] && !c.IsClosed() {
			s.drop(c)
		}
	}
	s.reconnectAll()
}

// reconnectAll makes every attempt to connect due, because this machine has moved.
func (s *Service) reconnectAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.retryNow()
	s.supernodes.retryNow()
	s.roundDue, s.meetNext = true, true
	background.Notify(s.moved)
	background.Notify(s.wake)
}

// watchHost records each connected peer of the network as known, whichever side dialled, and looks for
// other peers when the addresses of this host have changed.
func (s *Service) watchHost() {
	for e := range s.events.Out() {
		switch e := e.(type) {
		case event.EvtPeerIdentificationCompleted:
			s.identified(e)
		case event.EvtLocalAddressesUpdated:
			first := len(e.Removed) == 0 && !slices.ContainsFunc(e.Current, func(a event.UpdatedAddress) bool { return a.Action == event.Maintained })
			if !first {
				s.reconnectAll()
			}
		}
	}
}

func (s *Service) identified(e event.EvtPeerIdentificationCompleted) {
	if e.Conn == nil || s.config.Member(e.Peer) != nil {
		return
	}
	reached := e.Conn.Stat().Direction == network.DirOutbound
	info := p2ppeer.AddrInfo{ID: e.Peer}
	if reached {
		info.Addrs = []ma.Multiaddr{e.Conn.RemoteMultiaddr()}
	}
	s.met(info, reached)
}

// met records a connection to a peer; reached means that this peer dialled it. The peerstore's addresses
// follow those of info. Other peers may have supplied the peerstore's addresses, so met drops those that
// MayDial rejects; otherwise they would be dialled after a restart.
func (s *Service) met(info p2ppeer.AddrInfo, reached bool) {
	stored := s.host.Peerstore().Addrs(info.ID)
	if s.config.MayDial != nil {
		stored = slices.DeleteFunc(stored, func(a ma.Multiaddr) bool { return !s.config.MayDial(info.ID, a) })
	}
	info.Addrs = mergeAddrs(info.Addrs, stored)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.met(info, reached, time.Now())
}

// save writes the file of known peers if something has changed.
func (s *Service) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.PeersFile == "" || s.saved == s.known.changes {
		return nil
	}
	s.saved = s.known.changes // set even on failure, so that a full disk is not retried every time
	return s.known.remember(s.config.PeersFile)
}
