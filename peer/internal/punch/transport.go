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

// TCP is libp2p's transport, but for the port that peers behind relays are dialled from.
//
// Holes are punched from the ports that both listen on, and libp2p dials everybody from there:
// who is dialled sees where a hole would be. Yet a dial in vain leaves a trace at this peer's
// router, for minutes. When the other one dials next, the router lets that in, and as the dial
// is over here the listener answers; but the router takes the answer for part of what was
// dialled, which it does not fit, and drops it. The connection stays half open, and as long as
// it does the kernel refuses every dial from this port to there: no hole can be punched. So a
// peer that has relays, whom a dial reaches in vain as a rule, is dialled from another port
// unless a hole is punched.
//
// Supernodes are dialled from where holes are punched even while they have relays, as one has that
// was just started and does not know yet that it is reached without. What they see is how this peer learns its
// public address, without which no hole is punched.
type TCP struct {
	*tcp.TcpTransport
	elsewhere *tcp.TcpTransport // dials from another port
	known     peerstore.AddrBook
	public    []p2ppeer.ID
	holes     *holes
}

var _ transport.DialUpdater = (*TCP)(nil)

// TCP is a constructor for libp2p.Transport, of a host that has the Option, too.
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

// dial dials a peer from the port that is due. As a hole that begins to be punched waits for
// what the swarm dials already, that goes on from the other port then.
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
