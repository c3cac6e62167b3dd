package discovery

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/discovery/routing"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
)

// A Service is one peer's discovery. Its methods are safe for concurrent use.
type Service struct {
	cfg         Config
	host        host.Host
	dht         *dht.IpfsDHT
	rendezvous  *routing.RoutingDiscovery
	book        *book
	memory      *memory
	moves       *moves
	intro       *introduction
	reach       *reach
	coordinates *coordinates
	log         zerolog.Logger
	conduct     *misconduct.Log

	instance []byte    // of this process: see twinProtocol
	started  time.Time // of the same
	twinned  sync.Once // a twin was told of

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // background goroutines and stream handlers; Add under mu
}

// New joins cfg.Network over h, which stays the caller's, and begins at once to
// look for supernodes in the background. The service lives until Close, and its
// background work no longer than ctx.
func New(ctx context.Context, h host.Host, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	cfg.Supernodes = slices.DeleteFunc(slices.Clone(cfg.Supernodes), func(ai p2ppeer.AddrInfo) bool {
		return ai.ID == h.ID()
	})
	conduct := misconduct.New(cfg.Log)
	d, err := newDHT(h, cfg, conduct)
	if err != nil {
		return nil, fmt.Errorf("join the DHT of network %q: %w", cfg.Network, err)
	}
	reach, err := newReach(h)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	memory, err := newMemory(cfg.PeersFile)
	if err != nil {
		return nil, errors.Join(err, reach.events.Close(), d.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Service{
		cfg:         cfg,
		host:        h,
		dht:         d,
		rendezvous:  routing.NewRoutingDiscovery(d),
		book:        newBook(),
		memory:      memory,
		moves:       newMoves(),
		intro:       newIntroduction(len(cfg.Supernodes) == 0 && memory.count() == 0),
		reach:       reach,
		coordinates: newCoordinates(),
		log:         cfg.Log,
		instance:    newInstance(),
		started:     time.Now(),
		conduct:     conduct,
		ctx:         ctx,
		cancel:      cancel,
	}
	s.start()
	return s, nil
}

// newDHT joins the network's own DHT. Nothing in kad-dht's defaults filters
// loopback or private addresses or several peers behind one address: those
// filters belong to the public IPFS network. Values are left out: only
// routing and rendezvous are used. Bootstrap peers are left out too:
// introduceLoop looks after the supernodes, and reports what fails.
func newDHT(h host.Host, cfg Config, conduct *misconduct.Log) (*dht.IpfsDHT, error) {
	mode := dht.ModeClient
	if cfg.DHTServer {
		mode = dht.ModeServer // ModeAuto leaves LAN peers clients, with empty tables
	}
	return dht.New(h,
		dht.ProtocolPrefix(dhtPrefix(cfg.Network)),
		dht.Mode(mode),
		dht.DisableValues(),
		dht.ProviderDatastore(newAnnouncements(namespace(cfg.Network), conduct)),
		dht.ProviderManagerOpts(records.Cache(noCache{})),
	)
}

func dhtPrefix(network string) protocol.ID { return protocol.ID("/p2pmpi/" + network) }

// kadSuffix is what kad-dht adds to the prefix.
const kadSuffix = "/kad/1.0.0"

func kadProtocol(network string) protocol.ID { return dhtPrefix(network) + kadSuffix }

func (s *Service) start() {
	s.background(s.reach.watch)
	if s.cfg.Offer != nil {
		s.host.SetStreamHandler(offerProtocol, s.serveOffer)
		s.background(s.advertiseLoop)
		s.background(s.measureLoop)
	}
	if s.cfg.DHTServer {
		s.host.SetStreamHandler(twinProtocol, s.serveTwin)
	}
	if s.cfg.Twin != nil {
		s.background(s.twinLoop)
	}
	if len(s.cfg.Supernodes) > 0 {
		s.background(s.introduceLoop)
	}
	s.background(s.acquaintLoop)
	s.background(s.rejoinLoop)
	s.background(s.watchMoves)
	if s.cfg.MDNS {
		s.background((&lan{s}).loop)
	}
}

// background runs f until it returns, which it does when s.ctx ends.
func (s *Service) background(f func(context.Context)) {
	if s.enter() {
		go func() {
			defer s.wg.Done()
			f(s.ctx)
		}()
	}
}

// enter makes Close wait for one s.wg.Done, unless it has begun already.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// Close leaves the network and returns when every goroutine of the service has
// ended. The host stays open.
func (s *Service) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	s.cancel()
	if s.cfg.Offer != nil {
		s.host.RemoveStreamHandler(offerProtocol)
	}
	s.host.RemoveStreamHandler(twinProtocol)
	s.host.RemoveStreamHandler(kadProtocol(s.cfg.Network)) // dht.Close leaves it
	s.wg.Wait()
	if err := errors.Join(s.memory.save(), s.dht.Close()); err != nil {
		return fmt.Errorf("close discovery: %w", err)
	}
	return nil
}

// Peers returns the peers that have answered, nearest first, as each was at
// its last answer. It asks nobody: a search with Need.All does, and renews it.
func (s *Service) Peers() []Known {
	return slices.DeleteFunc(s.book.list(time.Now()), func(k Known) bool { return k.Answered.IsZero() })
}

// Reachability returns whether others can connect to the local peer directly, as far as is
// known.
func (s *Service) Reachability() network.Reachability { return s.reach.now() }

// ownOffer returns the local peer's current offer to a peer.
func (s *Service) ownOffer(asker p2ppeer.ID) Offer {
	o := s.cfg.Offer()
	if s.cfg.Machine != nil {
		o.Machine = s.cfg.Machine(asker)
	}
	o.Peer, o.Network = s.host.ID(), s.cfg.Network
	o.Protocol, o.Release = version.Protocol, version.Release
	o.OS, o.Arch = runtime.GOOS, runtime.GOARCH
	o.Reachability = s.reach.now()
	if here := s.coordinates.here(); checkCoordinate(here) == nil {
		o.Position = here
	}
	o.Issued = time.Now().Truncate(time.Millisecond)
	o.Expires = o.Issued.Add(offerLifetime)
	return o
}
