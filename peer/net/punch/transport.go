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
// Hole punching uses the ports that both peers listen on, and libp2p makes all other dials from the same port.
// But a failed dial leaves an entry in this peer's router for minutes. When the other peer dials next, the
// router lets that dial in and this peer's listener answers. The router then attributes the answer to the
// failed dial, which it does not fit, and drops it. The connection stays half open, and meanwhile the kernel
// refuses every dial from this port to that peer: no hole can be punched. Dials to peers that have relays
// usually fail, so they use another port unless a hole is being punched.
//
// Supernodes, and addresses that have answered an ordinary dial before, are always dialled from the
// hole-punching port. These peers report the address that they observe, and a peer punches no holes until two
// others agree on its public address. Each of them may have relays for a while: a peer that has just started,
// or whose supernode has, does not know yet that it can be reached directly.
type TCP struct {
	*tcp.TcpTransport
	elsewhere *tcp.TcpTransport // dials from another port
	known     peerstore.Peerstore
	public    []p2ppeer.ID
	holes     *holes
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
	return &TCP{here, elsewhere, s.Peerstore(), p.public, p.holes}, nil
}

// Dial implements transport.Transport.
func (t *TCP) Dial(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID) (transport.CapableConn, error) {
	return t.DialWithUpdates(ctx, to, id, nil)
}

// DialWithUpdates implements transport.DialUpdater.
func (t *TCP) DialWithUpdates(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID, updates chan<- transport.DialUpdate) (transport.CapableConn, error) {
	from := func(ctx context.Context, port *tcp.TcpTransport) (transport.CapableConn, error) {
		return port.DialWithUpdates(ctx, to, id, updates)
	}
	if punched, _, _ := network.GetSimultaneousConnect(ctx); punched {
		return from(ctx, t.TcpTransport)
	}
	return t.dial(ctx, to, id, from)
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

// dial dials a peer without hole punching, from the appropriate port. Hole punching waits for dials of the
// swarm in progress. If it begins during a dial from the other port, that dial is repeated from the
// hole-punching port.
func (t *TCP) dial(ctx context.Context, to ma.Multiaddr, id p2ppeer.ID, from func(context.Context, *tcp.TcpTransport) (transport.CapableConn, error)) (transport.CapableConn, error) {
	if slices.Contains(t.public, id) || t.hasAnswered(to, id) || !t.hasRelays(id) {
		c, err := from(ctx, t.TcpTransport)
		t.note(ctx, to, id, err)
		return c, err
	}
	ordinary, cancel := context.WithCancel(ctx)
	defer cancel()
	defer t.holes.dials(id, cancel)()
	c, err := from(ordinary, t.elsewhere)
	if err == nil || ordinary.Err() == nil || ctx.Err() != nil {
		t.note(ctx, to, id, err)
		return c, err
	}
	return from(ctx, t.TcpTransport)
}

func (t *TCP) hasRelays(id p2ppeer.ID) bool {
	return slices.ContainsFunc(t.known.Addrs(id), connection.IsCircuit)
}
