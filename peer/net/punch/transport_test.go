package punch

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

func newHost(t *testing.T, opts ...libp2p.Option) host.Host {
	t.Helper()
	h, err := libp2p.New(append(opts, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestSourcePortOfDials checks that peers are dialled from the listening port. The exceptions are dials without
// hole punching to peers that have relays, are not supernodes, and have not answered such a dial before.
func TestSourcePortOfDials(t *testing.T) {
	supernode := newHost(t)
	p := New([]p2ppeer.AddrInfo{{ID: supernode.ID()}}, prometheus.NewRegistry(), connection.NewPunches(), zerolog.Nop())
	from := newHost(t, libp2p.Transport(p.TCP))
	listening, err := from.Addrs()[0].ValueForProtocol(ma.P_TCP)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ relays, punched, supernode, answered, same bool }{
		"no relays":               {same: true},
		"relays":                  {relays: true},
		"relays, through a hole":  {relays: true, punched: true, same: true},
		"no relays, but a hole":   {punched: true, same: true},
		"a supernode with relays": {relays: true, supernode: true, same: true},
		"relays, answered before": {relays: true, answered: true, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			to := supernode
			if !c.supernode {
				to = newHost(t)
			}
			ctx := t.Context()
			if c.relays {
				relay := ma.StringCast("/ip4/127.0.0.1/tcp/1/p2p/" + to.ID().String() + "/p2p-circuit")
				from.Peerstore().AddAddr(to.ID(), relay, peerstore.PermanentAddrTTL)
			}
			if c.punched {
				ctx = network.WithSimultaneousConnect(ctx, true, "test")
			}
			from.Peerstore().AddAddrs(to.ID(), to.Addrs(), peerstore.PermanentAddrTTL)
			if c.answered {
				dialDirectly(t, from, to.ID())
				from.Network().ClosePeer(to.ID())
			}
			conn, err := from.Network().DialPeer(network.WithForceDirectDial(ctx, "test"), to.ID())
			if err != nil {
				t.Fatal(err)
			}
			port, err := conn.LocalMultiaddr().ValueForProtocol(ma.P_TCP)
			if err != nil {
				t.Fatal(err)
			}
			if (port == listening) != c.same {
				t.Errorf("dialled from port %s, listening at %s, want the same: %v", port, listening, c.same)
			}
		})
	}
}

func dialDirectly(t *testing.T, from host.Host, to p2ppeer.ID) {
	t.Helper()
	if _, err := from.Network().DialPeer(network.WithForceDirectDial(t.Context(), "test"), to); err != nil {
		t.Fatal(err)
	}
}

// TestAddressCountsAsAnsweringUntilADialFails checks that an address counts as answering until a dial fails.
func TestAddressCountsAsAnsweringUntilADialFails(t *testing.T) {
	p := New(nil, prometheus.NewRegistry(), connection.NewPunches(), zerolog.Nop())
	var dialler *TCP
	from := newHost(t, libp2p.Transport(func(s *swarm.Swarm, u transport.Upgrader, r network.ResourceManager) (_ *TCP, err error) {
		dialler, err = p.TCP(s, u, r)
		return dialler, err
	}))
	to := newHost(t)
	addr := to.Addrs()[0]
	from.Peerstore().AddAddr(to.ID(), addr, peerstore.PermanentAddrTTL)
	if dialler.hasAnswered(addr, to.ID()) {
		t.Fatal("hasAnswered is true before the first dial")
	}
	dialDirectly(t, from, to.ID())
	if !dialler.hasAnswered(addr, to.ID()) {
		t.Fatal("hasAnswered is false after a dial")
	}
	to.Close()
	if c, err := dialler.Dial(t.Context(), addr, to.ID()); err == nil {
		c.Close()
		t.Fatal("the closed peer accepted a dial")
	}
	if dialler.hasAnswered(addr, to.ID()) {
		t.Error("hasAnswered is true after a failed dial")
	}
}

// TestAllDialsShareTheOtherPort checks that dials to different addresses come from one port if that is possible,
// and otherwise from any other port.
func TestAllDialsShareTheOtherPort(t *testing.T) {
	var p port
	at := func(to net.Listener) (net.Conn, int) {
		t.Helper()
		c, err := p.DialContext(t.Context(), "tcp4", to.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c, c.LocalAddr().(*net.TCPAddr).Port
	}
	listen := func() net.Listener {
		t.Helper()
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	_, one := at(listen())
	to := listen()
	if _, another := at(to); another != one {
		t.Errorf("peers were dialled from ports %d and %d, want one port", one, another)
	}
	if _, again := at(to); again == one {
		t.Errorf("two connections to one address come from port %d", one)
	}
	if _, then := at(listen()); then != one {
		t.Errorf("the next dial comes from port %d, want %d", then, one)
	}
	all, err := net.Listen("tcp4", ":0") // uses its port exclusively
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	taken := all.Addr().(*net.TCPAddr).Port
	p.number["tcp4"] = taken
	_, other := at(listen())
	if _, now := at(listen()); other == taken || now == taken || now != p.of("tcp4") {
		t.Errorf("dials come from ports %d and %d, although another process uses %d; want the new port %d for the second", other, now, taken, p.of("tcp4"))
	}
	if _, err := p.DialContext(t.Context(), "tcp4", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial to an address that refuses connections: got %v, want %v", err, syscall.ECONNREFUSED)
	}
}
