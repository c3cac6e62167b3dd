package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
	"github.com/p2pmpi/p2pmpi/peer/net/punch"
)

// These tests cover defaults of libp2p that would be harmful here.

// channels is the protocol of the channels between processes in these tests.
const channels protocol.ID = "/channels"

const onLoopback = "/ip4/127.0.0.1/tcp/0"

// newTestHost starts the host of a peer that listens on the given addresses.
func newTestHost(t *testing.T, listen ...string) host.Host {
	t.Helper()
	return newHostOf(t, Config{Listen: multiaddrs(listen...)})
}

func multiaddrs(texts ...string) (addrs []ma.Multiaddr) {
	for _, text := range texts {
		addrs = append(addrs, ma.StringCast(text))
	}
	return addrs
}

// newHostOf starts the host that cfg describes. If cfg has no key or gate, the host has a new key or is in an
// open network.
func newHostOf(t *testing.T, cfg Config) host.Host {
	t.Helper()
	cfg.Puncher = punch.New(nil, prometheus.NewRegistry(), connection.NewPunches(), zerolog.Nop())
	var err error
	if cfg.Key == nil {
		if cfg.Key, _, err = crypto.GenerateEd25519Key(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	if cfg.Gate == nil {
		if cfg.Gate, err = membership.NewGate(membership.Config{}); err != nil {
			t.Fatal(err)
		}
		cfg.Dials = dialfilter.New()
	}
	h, err := New(cfg, prometheus.NewRegistry(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestStreamsOfALargeJob opens the channels between two peers with 32 processes of a job each. It checks that
// another protocol cannot have as many streams.
func TestStreamsOfALargeJob(t *testing.T) {
	manager, err := newResourceManager(channels, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	const all = 2 * 32 * 32
	open := func(id protocol.ID) (n int) {
		for range all {
			scope, err := manager.OpenStream("other", network.DirInbound)
			if err != nil {
				t.Fatal(err)
			}
			if scope.SetProtocol(id) != nil {
				scope.Done()
				break
			}
			n++
		}
		return n
	}
	if n := open(channels); n != all {
		t.Errorf("%d channels were opened, want %d", n, all)
	}
	if n := open("/stranger"); n == all {
		t.Errorf("%d streams of another protocol were opened, want fewer", n)
	}
}

// TestPeersProbeEachOthersReachability checks that a peer answers the requests of AutoNAT v2, by which others
// test each of their addresses, unless it is private.
func TestPeersProbeEachOthersReachability(t *testing.T) {
	for reachability, want := range map[Reachability]bool{Public: true, Private: false} {
		h := newHostOf(t, Config{Listen: multiaddrs(onLoopback), NAT: true, Reachability: reachability})
		answers := slices.Contains(h.Mux().Protocols(), autonatv2.DialProtocol)
		if answers != want {
			t.Errorf("a %s peer answers: %v, want %v", reachability, answers, want)
		}
	}
}

// TestTwoObserversSuffice checks that a host announces an address that two observers have reported. Without
// that address, no hole could be punched.
func TestTwoObserversSuffice(t *testing.T) {
	network := newTestHost(t, "/ip4/127.0.0.1/tcp/0").Network()
	listens := network.ListenAddresses()[0]
	virtualtime.Test(t, func(t *testing.T) {
		bus := eventbus.NewBus()
		m, err := observedaddrs.NewManager(bus, network)
		if err != nil {
			t.Fatal(err)
		}
		m.Start(network)
		defer m.Close()
		identified, err := bus.Emitter(new(event.EvtPeerIdentificationCompleted))
		if err != nil {
			t.Fatal(err)
		}
		defer identified.Close()
		see := func(by, at string) {
			from := ma.StringCast(fmt.Sprintf("/ip4/%s/tcp/4001", by))
			e := event.EvtPeerIdentificationCompleted{Conn: &seenConn{local: listens, remote: from}, ObservedAddr: ma.StringCast(at)}
			if err := identified.Emit(e); err != nil {
				t.Fatal(err)
			}
		}
		const claimed, seen = "/ip4/11.0.9.1/tcp/4001", "/ip4/11.0.9.2/tcp/4001"
		see("11.0.0.1", claimed) // one observer, which may lie
		see("11.0.0.1", claimed) // and repeats its claim
		see("11.0.0.2", seen)
		see("11.0.0.3", seen)
		synctest.Wait()
		want := []ma.Multiaddr{ma.StringCast(seen)}
		if got := m.AddrsFor(listens); !slices.EqualFunc(got, want, ma.Multiaddr.Equal) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// A seenConn is a connection to an observer of this host's address.
type seenConn struct {
	network.Conn
	local, remote ma.Multiaddr
}

func (c *seenConn) LocalMultiaddr() ma.Multiaddr  { return c.local }
func (c *seenConn) RemoteMultiaddr() ma.Multiaddr { return c.remote }
func (c *seenConn) IsClosed() bool                { return false }

// TestHostDialsRelaysOverItsListenTransport uses a relay that does not answer over the transport on which a
// host listens. The host waits for an answer before it dials the other transport, over which it would not learn
// its own address.
func TestHostDialsRelaysOverItsListenTransport(t *testing.T) {
	skip.Long(t)
	const overTCP, overQUIC = "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"
	mute, err := net.Listen("tcp", "127.0.0.1:0") // connections are not accepted
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	muteTCP, err := manet.FromNetAddr(mute.Addr())
	if err != nil {
		t.Fatal(err)
	}
	muteUDP, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { muteUDP.Close() })
	at, err := manet.FromNetAddr(muteUDP.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	muteQUIC := at.Encapsulate(ma.StringCast("/quic-v1"))
	tests := map[string]struct {
		listen []string
		relay  string       // the address that answers
		mute   ma.Multiaddr // the address that does not
		waits  bool
	}{
		"TCP":                         {[]string{overTCP}, overQUIC, muteTCP, true},
		"QUIC":                        {[]string{overQUIC}, overTCP, muteQUIC, true},
		"both":                        {[]string{overTCP, overQUIC}, overQUIC, muteTCP, false},
		"neither":                     {nil, overQUIC, muteTCP, false},
		"TCP, and the relay has none": {[]string{overTCP}, overQUIC, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay, err := libp2p.New(libp2p.ListenAddrStrings(test.relay), libp2p.DisableRelay(), libp2p.DisableMetrics())
			if err != nil {
				t.Fatal(err)
			}
			defer relay.Close()
			info := *host.InfoFromHost(relay)
			if test.mute != nil {
				info.Addrs = append(slices.Clone(info.Addrs), test.mute)
			}
			timeout := time.Minute
			if test.waits {
				timeout = ownHeadStart / 2
			}
			h := newTestHost(t, test.listen...)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			err = h.Connect(ctx, info)
			if test.waits != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v; want a dial that waits: %v", err, test.waits)
			}
		})
	}
}
