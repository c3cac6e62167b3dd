package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/discovery/routing"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// A Service is one peer's discovery. Its methods are safe for concurrent use.
type Service struct {
	cfg        Config
	host       host.Host
	dht        *dht.IpfsDHT
	rendezvous *routing.RoutingDiscovery
	book       *book
	connected  *connected.Service
	intro      *introduction
	offers     *offers
	duplicates *duplicates
	work       *background.Work
}

// New joins cfg.Network over h, which the caller keeps owning. It starts to look for supernodes in the
// background at once. The service lives until Close; its background work also ends with ctx.
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
	work := background.New(ctx)
	s := &Service{
		cfg:        cfg,
		host:       h,
		dht:        d,
		rendezvous: routing.NewRoutingDiscovery(d),
		book:       newBook(),
		intro:      &introduction{changed: make(chan struct{})},
		duplicates: newDuplicates(h, cfg.Duplicate, work, conduct),
		work:       work,
	}
	s.offers = &offers{cfg: cfg, host: h, reach: reach, coordinates: newCoordinates(), locate: s.Locate, work: work, conduct: conduct}
	if s.connected, err = connected.New(work.Context(), h, s.connections()); err != nil {
		work.Stop()
		return nil, errors.Join(err, reach.events.Close(), d.Close())
	}
	s.start()
	return s, nil
}

// newDHT joins the network's own DHT. It sets none of the filters for loopback addresses, private
// addresses or several peers behind one address, which belong to the public IPFS network. Values are
// disabled, because only routing and rendezvous are used. It sets no bootstrap peers, because
// introduce connects to the supernodes and reports failures.
func newDHT(h host.Host, cfg Config, conduct *misconduct.Log) (*dht.IpfsDHT, error) {
	mode := dht.ModeClient
	if cfg.DHTServer {
		mode = dht.ModeServer // ModeAuto would keep LAN peers as clients, with empty tables
	}
	return dht.New(h,
		dht.ProtocolPrefix(dhtPrefix(cfg.Network)),
		dht.Mode(mode),
		dht.DisableValues(),
		dht.ProviderDatastore(newAnnouncements(namespace(cfg.Network), conduct)),
		dht.ProviderManagerOpts(records.Cache(noCache{})),
	)
}

// connections returns the configuration of the component that keeps this peer connected.
func (s *Service) connections() connected.Config {
	return connected.Config{
		PeersFile:   s.cfg.PeersFile,
		MayDial:     s.cfg.MayDial,
		Member:      s.checkMember,
		Reached:     s.duplicates.check,
		Meet:        s.findOthers,
		Locate:      s.Locate,
		Introduce:   s.introduce,
		RetryMin:    s.cfg.RetryMin,
		RetryMax:    s.cfg.RetryMax,
		DialTimeout: s.cfg.AskTimeout,
		Log:         s.cfg.Log,
	}
}

func dhtPrefix(network string) protocol.ID { return protocol.ID("/p2pmpi/" + network) }

// kadSuffix is the suffix that kad-dht adds to the protocol prefix.
const kadSuffix = "/kad/1.0.0"

func kadProtocol(network string) protocol.ID { return dhtPrefix(network) + kadSuffix }

func (s *Service) start() {
	s.work.Go(s.offers.reach.watch)
	if s.cfg.Offer != nil {
		s.serve(offerProtocol, s.offers.serve)
		s.work.Go(s.advertiseLoop)
		s.work.Every(measureEvery, func(ctx context.Context) { s.offers.measure(ctx, s.book) })
	}
	if s.cfg.DHTServer {
		s.serve(duplicateProtocol, s.duplicates.serve)
	}
	if s.cfg.Duplicate != nil {
		s.work.Every(duplicateEvery, s.duplicates.askRandom)
	}
	s.connected.Start()
	if s.cfg.MDNS {
		s.work.Go((&lan{s}).loop)
	}
}

func (s *Service) serve(id protocol.ID, handle network.StreamHandler) {
	s.host.SetStreamHandler(id, func(stream network.Stream) { s.work.Serve(stream, func() { handle(stream) }) })
}

// Close leaves the network and returns when all goroutines of the service have ended. The host stays
// open.
func (s *Service) Close() error {
	if !s.work.Stop() {
		return nil
	}
	if s.cfg.Offer != nil {
		s.host.RemoveStreamHandler(offerProtocol)
	}
	s.host.RemoveStreamHandler(duplicateProtocol)
	s.host.RemoveStreamHandler(kadProtocol(s.cfg.Network)) // dht.Close does not remove it
	err := s.connected.Close()
	s.work.Wait()
	if err := errors.Join(err, s.dht.Close()); err != nil {
		return fmt.Errorf("close discovery: %w", err)
	}
	return nil
}

// Peers returns the peers that have answered, nearest first, with the state of each one's last answer. It
// sends no requests; a search with Need.All does, and refreshes the result.
func (s *Service) Peers() []Known {
	return slices.DeleteFunc(s.book.list(time.Now()), func(k Known) bool { return k.Answered.IsZero() })
}

// KeepPartners keeps this peer connected to the peers of its jobs; see connected.Service.KeepPartners.
func (s *Service) KeepPartners(partners func() map[p2ppeer.ID]time.Duration, back func(p2ppeer.ID)) {
	s.connected.KeepPartners(partners, back)
}

// Reachability returns whether other peers can connect to the local peer directly, as far as is known.
func (s *Service) Reachability() network.Reachability { return s.offers.reach.now() }
