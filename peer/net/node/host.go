package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	coreconnmgr "github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/net/punch"
)

// observers is the number of peers at different addresses that must observe this peer at an address before this
// peer announces that address. libp2p requires four observers, but many networks have fewer peers with public
// addresses. A single observer could lie.
const observers = 2

// wantObservers sets that number for all hosts of the process.
var wantObservers = sync.OnceFunc(func() { observedaddrs.ActivationThresh = observers })

// A Config describes the host of a peer.
type Config struct {
	Key          crypto.PrivKey
	Listen       []ma.Multiaddr
	NAT          bool         // the peer may be behind address translation
	Reachability Reachability // as stated by the owner; Auto: not stated
	Gate         *membership.Gate
	Dials        *dialfilter.Filter // if nil, the host dials any address
	Puncher      *punch.Puncher     // may be nil without NAT
	Mapper       *portmap.Mapper    // if nil, no ports are mapped
	Channels     protocol.ID        // protocol of the streams for channels between processes
}

// New starts the libp2p host that cfg describes. Its metrics go to reg, which belongs to this peer alone
// because several peers can share a process.
func New(cfg Config, reg prometheus.Registerer, log zerolog.Logger) (host.Host, error) {
	wantObservers()
	if err := PortsFree(cfg.Listen); err != nil {
		return nil, err
	}
	resources, err := newResourceManager(cfg.Channels, log)
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(fewConns, manyConns, connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	options := []libp2p.Option{
		libp2p.Identity(cfg.Key),
		libp2p.NoListenAddrs, // libp2p.New would leak goroutines if it could not listen
		libp2p.Muxer(yamux.ID, connected.Counting(yamux.DefaultTransport)),
		libp2p.SwarmOpts(swarm.WithDialRanker(rankingFor(cfg.Listen).rank)),
		libp2p.ProtocolVersion(protocolVersion),
		libp2p.UserAgent(protocolPrefix + version.Release),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(conns),
		libp2p.PrometheusRegisterer(reg),
	}
	options = append(append(options, admission(cfg.Gate, cfg.Dials)...), reachability(cfg)...)
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, fmt.Errorf("start libp2p: %w", err)
	}
	if err := h.Network().Listen(cfg.Listen...); err != nil { // none of the addresses works
		h.Close()
		return nil, fmt.Errorf("listen on %v: %w", cfg.Listen, err)
	}
	return h, nil
}

func admission(gate *membership.Gate, dials *dialfilter.Filter) []libp2p.Option {
	var gater coreconnmgr.ConnectionGater
	if !gate.Open() {
		gater = gate
	}
	var options []libp2p.Option
	if dials != nil {
		gater = dials.Gater(gater)
		options = append(options, libp2p.MultiaddrResolver(dials.Resolver(swarm.ResolverFromMaDNS{Resolver: madns.DefaultResolver})))
	}
	if gater != nil {
		options = append(options, libp2p.ConnectionGater(gater))
	}
	if !gate.Open() {
		return append(options,
			libp2p.Transport(gate.QUIC),
			libp2p.Security(membership.SecurityID, gate.TLS),
		)
	}
	return append(options,
		libp2p.Transport(quic.NewTransport),
		// TLS comes first because its throughput is twice that of Noise.
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		// This protocol comes last. The members of a private network support no other, and use it to report why
		// they refuse this peer.
		libp2p.Security(membership.SecurityID, gate.TLS),
	)
}

// reachability returns the options that make a peer reachable behind address translation. Package stack decides
// which relays the peer uses, and whether the peer is a relay. If the owner has stated the reachability, libp2p
// uses that instead of determining it, and the router maps no ports. A public peer still runs AutoNAT v2.
func reachability(cfg Config) []libp2p.Option {
	if !cfg.NAT {
		return []libp2p.Option{libp2p.DisableRelay(), libp2p.Transport(tcp.NewTCPTransport)}
	}
	options := []libp2p.Option{libp2p.EnableRelay(), libp2p.Transport(cfg.Puncher.TCP), cfg.Puncher.Option()}
	switch cfg.Reachability {
	case Public:
		return append(options, libp2p.ForceReachabilityPublic(), libp2p.EnableAutoNATv2())
	case Private:
		return append(options, libp2p.ForceReachabilityPrivate())
	}
	return append(options, libp2p.EnableAutoNATv2(), cfg.Mapper.Option())
}
