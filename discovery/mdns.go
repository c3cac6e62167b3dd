package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
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
	for ctx.Err() == nil {
		service := l.start()
		wait := lanRenewal
		if service == nil || l.s.connected.Alone() {
			wait = lanRetry
		}
		select {
		case <-time.After(wait):
		case <-l.s.connected.Moved():
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
		l.s.cfg.Log.Debug().Err(err).Msg("mDNS is unavailable")
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
	l.s.connected.Heard(info)
}

// mdnsName returns the network's mDNS service name. It contains a hash, because a DNS label is shorter
// than the longest network name.
func mdnsName(network string) string {
	sum := sha256.Sum256([]byte(network))
	return "_p2pmpi-" + hex.EncodeToString(sum[:3]) + "._udp"
}

func onlyLoopback(addrs []ma.Multiaddr) bool {
	return !slices.ContainsFunc(addrs, func(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) })
}
