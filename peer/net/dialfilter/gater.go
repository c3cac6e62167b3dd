package dialfilter

import (
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/conngater"
	ma "github.com/multiformats/go-multiaddr"
)

// Gater returns a gater that applies both inner and the filter, and records the peers that connect. A nil
// inner permits all connections.
func (f *Filter) Gater(inner connmgr.ConnectionGater) connmgr.ConnectionGater {
	if inner == nil {
		inner, _ = conngater.NewBasicConnectionGater(nil) // without a store it does not fail
	}
	return gater{inner, f}
}

type gater struct {
	connmgr.ConnectionGater
	filter *Filter
}

// InterceptAddrDial applies the filter.
func (g gater) InterceptAddrDial(p p2ppeer.ID, a ma.Multiaddr) bool {
	return g.filter.MayDial(p, a) && g.ConnectionGater.InterceptAddrDial(p, a)
}

func (g gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	ok, why := g.ConnectionGater.InterceptUpgraded(c)
	if ok {
		g.filter.Met(c)
	}
	return ok, why
}
