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

// A lan hears of neighbours over mDNS and connects to them; the DHT and the
// searches then know them like any other peer.
type lan struct {
	s       *Service
	service io.Closer             // nil when this host stays off the LAN
	heard   chan p2ppeer.AddrInfo // from HandlePeerFound to connectLoop
}

var _ mdns.Notifee = (*lan)(nil)

// startLAN announces s on its LAN and listens there. A machine without
// multicast simply has no neighbours.
func startLAN(s *Service) *lan {
	l := &lan{s: s, heard: make(chan p2ppeer.AddrInfo, 16)}
	s.background(l.connectLoop)
	if onlyLoopback(s.host.Addrs()) {
		return l
	}
	service := mdns.NewMdnsService(s.host, mdnsName(s.cfg.Network), l)
	if err := service.Start(); err != nil {
		s.log.Info().Err(err).Msg("no mDNS on this machine")
	}
	l.service = service
	return l
}

// HandlePeerFound takes a neighbour in. It never blocks, because mdns calls it
// on goroutines that outlive Close; a neighbour dropped here is announced again.
func (l *lan) HandlePeerFound(info p2ppeer.AddrInfo) {
	select {
	case l.heard <- info:
	default:
	}
}

// connectLoop connects to neighbours, one at a time, until ctx ends.
func (l *lan) connectLoop(ctx context.Context) {
	for {
		select {
		case info := <-l.heard:
			l.connect(ctx, info)
		case <-ctx.Done():
			return
		}
	}
}

func (l *lan) connect(ctx context.Context, info p2ppeer.AddrInfo) {
	if info.ID == l.s.host.ID() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.AskTimeout)
	defer cancel()
	if err := l.s.host.Connect(ctx, info); err != nil {
		l.s.log.Debug().Err(err).Stringer("peer", info.ID).Msg("mDNS neighbour not reached")
		return
	}
	l.s.book.hint(info, time.Now())
}

func (l *lan) close() error {
	if l.service == nil {
		return nil
	}
	return l.service.Close()
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
