package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/internal/redial"
)

const (
	// lanRenewal is the interval at which the mDNS service is restarted. The library reports each
	// neighbour once, uses the interfaces and addresses of its start, and ends at its first error.
	lanRenewal = 5 * time.Minute

	// lanRetry is that interval while no peer is connected, or mDNS fails to start.
	lanRetry = 20 * time.Second
)

// A lan finds neighbours over mDNS. They become known peers, so one that cannot be reached yet is tried
// again.
type lan struct{ s *Service }

var _ mdns.Notifee = (*lan)(nil)

// loop announces this peer on its LAN and listens there, until ctx ends. It restarts the mDNS service at
// intervals and when the machine has moved. On a machine without multicast it finds no neighbours.
func (l *lan) loop(ctx context.Context) {
	moved := l.s.moves.next()
	for ctx.Err() == nil {
		service := l.start()
		wait := lanRenewal
		if service == nil || l.s.alone() {
			wait = lanRetry
		}
		select {
		case <-time.After(wait):
		case <-moved:
			moved = l.s.moves.next()
		case <-ctx.Done():
		}
		if service != nil {
			service.Close() // returns nil
		}
	}
}

// start starts the mDNS service. It returns nil if this host is not reachable from the LAN, or mDNS is
// unavailable.
func (l *lan) start() io.Closer {
	// Not host.Addrs, which may be a minute old.
	if onlyLoopback(l.s.host.Network().ListenAddresses()) {
		return nil
	}
	service := mdns.NewMdnsService(l.s.host, mdnsName(l.s.cfg.Network), l)
	if err := service.Start(); err != nil {
		l.s.log.Debug().Err(err).Msg("no mDNS on this machine now")
		service.Close()
		return nil
	}
	return service
}

// HandlePeerFound processes a neighbour. It never blocks, because mdns calls it on goroutines that
// outlive Close.
func (l *lan) HandlePeerFound(info p2ppeer.AddrInfo) {
	if info.ID == l.s.host.ID() {
		return
	}
	if l.s.cfg.Neighbour != nil {
		l.s.cfg.Neighbour(info)
	}
	switch l.s.host.Network().Connectedness(info.ID) {
	case network.Connected:
	case network.Limited: // through a relay: it may have been connected before mDNS found it
		if l.s.enter() {
			go l.approach(info) // ends within AskTimeout or with the service
		}
	default:
		l.s.memory.heard(info)
	}
}

// approach opens a direct connection to a neighbour that is connected through a relay.
func (l *lan) approach(info p2ppeer.AddrInfo) {
	defer l.s.wg.Done()
	ctx, cancel := context.WithTimeout(network.WithForceDirectDial(l.s.ctx, "a neighbour"), l.s.cfg.AskTimeout)
	defer cancel()
	redial.Allow(l.s.host, info.ID)
	if err := l.s.host.Connect(ctx, info); err != nil {
		l.s.log.Debug().Err(err).Stringer("peer", info.ID).Msg("neighbour not reached directly")
	}
}

// mdnsName returns the network's mDNS service name. It contains a hash, because a DNS label is shorter
// than the longest network name.
func mdnsName(network string) string {
	sum := sha256.Sum256([]byte(network))
	return "_p2pmpi-" + hex.EncodeToString(sum[:3]) + "._udp"
}

// onlyLoopback reports whether all addrs are loopback addresses.
func onlyLoopback(addrs []ma.Multiaddr) bool {
	return !slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) })
}
