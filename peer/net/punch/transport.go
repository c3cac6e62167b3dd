package punch

import (
	"context"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// TCP is libp2p's TCP transport, except that it dials peers that have relays from another port.
//
// Hole punching uses the ports on which both peers listen, and libp2p also makes all other dials from these
// ports. But a failed dial leaves an entry in this peer's router for minutes. When the other peer dials next, the
// router lets that dial in, and this peer's listener answers. The router assigns the answer to the failed dial,
// which it does not fit, and drops it. The connection stays half open. Meanwhile the kernel refuses every dial
// from this port to that peer, so no hole can be punched. Since dials to peers that have relays usually fail,
// they use another port, except during hole punching.
//
// Supernodes, and addresses that answered the last ordinary dial, are always dialled from the listening port. Other
// peers report the address at which they observe this peer, and libp2p punches no holes until two of them have
// observed this peer's listening port. A peer that others can reach directly may have relays for a while, when it
// or its supernode has just started.
type TCP struct {
	*tcp.TcpTransport
	elsewhere  *tcp.TcpTransport // dials from another port
	known      peerstore.Peerstore
	supernodes []p2ppeer.ID
}

var _ transport.DialUpdater = (*TCP)(nil)

// TCP is a constructor for libp2p.Transport, for a host that also has the Option.
func (p *Puncher) TCP(s *swarm.Swarm, upgrader transport.Upgrader, resources network.ResourceManager) (*TCP, error) {
	here, err := tcp.NewTCPTransport(upgrader, resources, nil)
	if err != nil {
		return nil, err
	}
	elsewhere, err := tcp.NewTCPTransport(upgrader, resources, nil, tcp.WithDialerForAddr(new(port).dialer))
	if err != nil {
		return nil, err
	}
	return &TCP{here, elsewhere, s.Peerstore(), p.supernodes}, nil
}

// Dial implements transport.Transport.
func (t *TCP) Dial(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID) (transport.CapableConn, error) {
	return t.DialWithUpdates(ctx, to, id, nil)
}

// DialWithUpdates implements transport.DialUpdater.
func (t *TCP) DialWithUpdates(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID, updates chan<- transport.DialUpdate) (transport.CapableConn, error) {
	if punching, _, _ := network.GetSimultaneousConnect(ctx); punching {
		return t.TcpTransport.DialWithUpdates(ctx, to, id, updates)
	}
	from := t.elsewhere
	if slices.Contains(t.supernodes, id) || t.hasAnswered(to, id) || !t.hasRelays(id) {
		from = t.TcpTransport
	}
	c, err := from.DialWithUpdates(ctx, to, id, updates)
	t.note(ctx, to, id, err)
	return c, err
}

// answered returns the key under which the peerstore records that an address has answered an ordinary dial.
func answered(a ma.Multiaddr) string { return "p2pmpi/answered/" + a.String() }

// note records whether an address answered the last ordinary dial, which ended with err.
func (t *TCP) note(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID, err error) {
	if err == nil || ctx.Err() == nil && t.hasAnswered(to, id) {
		_ = t.known.Put(id, answered(to), err == nil) // in memory
	}
}

// hasAnswered reports whether the last ordinary dial of an address succeeded.
func (t *TCP) hasAnswered(to ma.Multiaddr, id p2ppeer.ID) bool {
	ok, err := t.known.Get(id, answered(to))
	return err == nil && ok == true
}

func (t *TCP) hasRelays(id p2ppeer.ID) bool {
	return slices.ContainsFunc(t.known.Addrs(id), connection.IsCircuit)
}
