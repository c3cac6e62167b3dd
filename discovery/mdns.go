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
	// lanRenewal is how often the LAN is told and asked anew. The library tells of each
	// neighbour once, uses the interfaces and addresses of its start, and ends
	// at its first error.
	lanRenewal = 5 * time.Minute

	// lanRetry is how soon that is done while nobody is connected, or it fails.
	lanRetry = 20 * time.Second
)

// A lan hears of neighbours over mDNS. They are tried like acquaintances, so one that cannot
// be reached yet is not lost.
type lan struct{ s *Service }

var _ mdns.Notifee = (*lan)(nil)

// loop announces this peer on its LAN and listens there, until ctx ends. It does so anew
// now and then, and when the machine has moved. A machine without multicast simply has
// no neighbours.
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

// start returns nil when nobody on the LAN could reach this host, or the LAN it.
func (l *lan) start() io.Closer {
	// Not the addresses that the host tells others: those may be a minute old.
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

// HandlePeerFound takes a neighbour in. It never blocks, because mdns calls it
// on goroutines that outlive Close.
func (l *lan) HandlePeerFound(info p2ppeer.AddrInfo) {
	if info.ID == l.s.host.ID() {
		return
	}
	if l.s.cfg.Neighbour != nil {
		l.s.cfg.Neighbour(info)
	}
	switch l.s.host.Network().Connectedness(info.ID) {
	case network.Connected:
	case network.Limited: // through a relay: it may have been met so before the LAN told of it
		if l.s.enter() {
			go l.approach(info) // ends within AskTimeout, or with the service
		}
	default:
		l.s.memory.heard(info)
	}
}

// approach connects to a neighbour directly that is connected through a relay.
func (l *lan) approach(info p2ppeer.AddrInfo) {
	defer l.s.wg.Done()
	ctx, cancel := context.WithTimeout(network.WithForceDirectDial(l.s.ctx, "a neighbour"), l.s.cfg.AskTimeout)
	defer cancel()
	redial.Allow(l.s.host, info.ID)
	if err := l.s.host.Connect(ctx, info); err != nil {
		l.s.log.Debug().Err(err).Stringer("peer", info.ID).Msg("neighbour not reached directly")
	}
}

// mdnsName is the network's own service name. A hash, because a DNS label has
// fewer letters than a network's name.
func mdnsName(network string) string {
	sum := sha256.Sum256([]byte(network))
	return "_p2pmpi-" + hex.EncodeToString(sum[:3]) + "._udp"
}

// onlyLoopback reports whether nobody on the LAN could reach addrs.
func onlyLoopback(addrs []ma.Multiaddr) bool {
	return !slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) })
}
