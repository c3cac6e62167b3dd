package portmap

import (
	"fmt"
	"net/netip"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Option makes a host announce the external addresses of the ports that it listens on.
func (m *Mapper) Option() libp2p.Option {
	return libp2p.NATManager(func(network.Network) basichost.NATManager { return announcer{m} })
}

// An announcer tells libp2p the mapped ports. It does not close the Mapper, which also has other users.
type announcer struct{ mapper *Mapper }

var _ basichost.NATManager = announcer{}

// GetMapping implements basichost.NATManager. It returns the external address to which a listening address is
// mapped, or nil.
func (a announcer) GetMapping(listen ma.Multiaddr) ma.Multiaddr {
	thin, rest := ma.SplitFunc(listen, func(c ma.Component) bool {
		code := c.Protocol().Code
		return code != ma.P_IP4 && code != ma.P_TCP && code != ma.P_UDP
	})
	if len(thin) == 0 {
		return nil
	}
	here, err := manet.ToNetAddr(thin)
	if err != nil {
		return nil
	}
	at, err := netip.ParseAddrPort(here.String())
	if err != nil || !at.Addr().IsGlobalUnicast() && !at.Addr().IsUnspecified() {
		return nil
	}
	outside, ok := a.mapper.Mapped(Port{here.Network(), at.Port()})
	if !ok {
		return nil
	}
	mapped, err := ma.NewMultiaddr(fmt.Sprintf("/ip4/%s/%s/%d", outside.Addr(), here.Network(), outside.Port()))
	if err != nil {
		return nil
	}
	return ma.Join(mapped, rest)
}

func (a announcer) HasDiscoveredNAT() bool { return a.mapper.Router().How != "" }
func (announcer) Close() error             { return nil }
