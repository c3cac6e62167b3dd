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
// Supernodes are always dialled from the hole-punching port, because they report the address that they
// observe. A peer that does not know its public address punches no holes. A supernode that has just started
// may have relays too, until it learns that it can be reached directly.
type TCP struct {
	*tcp.TcpTransport
	elsewhere *tcp.TcpTransport // dials from another port
	known     peerstore.AddrBook
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
	return t.dial(ctx, id, func(ctx context.Context, from *tcp.TcpTransport) (transport.CapableConn, error) {
		return from.DialWithUpdates(ctx, to, id, updates)
	})
}

// dial dials a peer from the appropriate port. Hole punching waits for dials of the swarm in progress. If
// it begins during a dial from the other port, that dial is repeated from the hole-punching port.
func (t *TCP) dial(ctx context.Context, id p2ppeer.ID, from func(context.Context, *tcp.TcpTransport) (transport.CapableConn, error)) (transport.CapableConn, error) {
	if punched, _, _ := network.GetSimultaneousConnect(ctx); punched || slices.Contains(t.public, id) || !t.hasRelays(id) {
		return from(ctx, t.TcpTransport)
	}
	ordinary, cancel := context.WithCancel(ctx)
	defer cancel()
	defer t.holes.dials(id, cancel)()
	c, err := from(ordinary, t.elsewhere)
	if err == nil || ordinary.Err() == nil || ctx.Err() != nil {
		return c, err
	}
	return from(ctx, t.TcpTransport)
}

func (t *TCP) hasRelays(id p2ppeer.ID) bool {
	for _, a := range t.known.Addrs(id) {
		if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err == nil {
			return true
		}
	}
	return false
}
