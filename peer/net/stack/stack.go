package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/net/punch"
	"github.com/p2pmpi/p2pmpi/peer/net/relay"
)

// A Config describes the network stack of a peer.
type Config struct {
	Key          crypto.PrivKey
	Listen       []ma.Multiaddr
	Supernodes   []p2ppeer.AddrInfo
	Admission    *networks.Admission
	NAT          bool              // the peer may be behind address translation
	Reachability node.Reachability // as stated by the owner; Auto if not stated
	Relay        relay.Limits      // limits as a relay; if zero, the peer is not a relay
	FilterDials  bool              // install a dial filter, because the peer hosts the jobs of other users
	Channels     protocol.ID       // protocol of the streams for channels between processes

	Metrics prometheus.Registerer
	Log     zerolog.Logger
	Owns    func(part string, close func() error) // called for each part that has started; the caller closes it
}

// mapsPorts reports whether the peer asks a router to map ports. If the owner has stated the reachability, the
// peer does not ask.
func (c Config) mapsPorts() bool { return c.NAT && c.Reachability == node.Auto }

// A Stack is the running network stack of a peer.
type Stack struct {
	Host    host.Host // also connects to itself
	Punches *connection.Punches
	Dials   *dialfilter.Filter // if nil, the host dials any address
	Ports   *portmap.Mapper    // if nil, no ports are mapped
	Watcher *node.Watcher
}

// Start starts the network stack that cfg describes. A private peer waits for a supernode to relay for it,
// until life ends at the latest. If Start fails, the caller still has to close the parts that have started.
func Start(life context.Context, cfg Config) (*Stack, error) {
	s := &Stack{Punches: connection.NewPunches()}
	if cfg.FilterDials {
		s.Dials = dialfilter.New()
		for _, info := range cfg.Supernodes {
			s.Dials.Name(info)
		}
	}
	puncher := punch.New(cfg.Supernodes, cfg.Metrics, s.Punches, cfg.Log)
	if cfg.mapsPorts() {
		s.Ports = portmap.New(cfg.Log)
		cfg.Owns("port mapping", s.Ports.Close)
	}
	h, err := node.New(node.Config{
		Key: cfg.Key, Listen: cfg.Listen, NAT: cfg.NAT, Reachability: cfg.Reachability,
		Gate: cfg.Admission.Gate, Dials: s.Dials, Puncher: puncher, Mapper: s.Ports, Channels: cfg.Channels,
	}, cfg.Metrics, cfg.Log)
	if err != nil {
		return nil, err
	}
	if s.Dials != nil {
		h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) { s.Dials.Met(c) }})
	}
	wrapped := loopback.Wrap(h) // allows a submitter to use its own slots
	s.Host = wrapped
	cfg.Owns("host", wrapped.Close)
	cfg.Owns("membership", cfg.Admission.Serve(h).Close)
	if cfg.NAT {
		if err := puncher.Start(h); err != nil {
			return nil, fmt.Errorf("start hole punching: %w", err)
		}
		cfg.Owns("hole punching", puncher.Close)
	}
	if s.Watcher, err = node.Watch(s.Host, cfg.Log); err != nil {
		return nil, err
	}
	cfg.Owns("version check", s.Watcher.Close)
	return s, startRelays(life, cfg, h)
}

// reservedTimeout bounds the time for which a private peer waits at startup until a supernode relays for it.
const reservedTimeout = 5 * time.Second

// startRelays starts both sides of relaying: reservations at relays for this peer, and this peer as a relay. The
// first relays are the supernodes, since the peer knows them before any other peer can reach it.
func startRelays(life context.Context, cfg Config, h host.Host) error {
	if !cfg.NAT {
		return nil
	}
	relaying := relay.Config{
		Network: cfg.Admission.ID, Public: cfg.Reachability == node.Public, Limits: cfg.Relay, Log: cfg.Log,
	}
	if !relaying.Public {
		relaying.Relays = cfg.Supernodes
	}
	relays, err := relay.New(h, relaying)
	if err != nil {
		return fmt.Errorf("start relaying: %w", err)
	}
	cfg.Owns("relays", relays.Close)
	if cfg.Reachability == node.Private && len(relaying.Relays) > 0 {
		ctx, cancel := context.WithTimeout(life, reservedTimeout)
		defer cancel()
		if err := relays.Reserved(ctx); err != nil {
			cfg.Log.Warn().Msg("no supernode relays for this peer yet: others cannot reach it")
		}
	}
	return nil
}
