package node

import (
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
)

func TestTCPIsDialledBeforeQUICBeforeRelays(t *testing.T) {
	const (
		circuit     = "/p2p/12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf/p2p-circuit"
		relayed     = "/ip4/192.0.2.9/tcp/1" + circuit
		alsoRelayed = "/ip4/192.0.2.9/tcp/2" + circuit
		lastRelayed = "/ip4/192.0.2.9/udp/1/quic-v1" + circuit
		otherRelay  = "/ip4/192.0.2.8/tcp/1/p2p/12D3KooWD7GYSLu6NW9E5wWiGtdSLWLC9j7JFgsaZn9UYSWoLyro/p2p-circuit"
	)
	tests := map[string]struct {
		addrs []string
		want  map[string]time.Duration // minimum delay of each address
		now   []string                 // addresses without a delay
	}{
		"both": {
			addrs: []string{"/ip4/11.0.0.1/udp/1/quic-v1", "/ip4/11.0.0.1/tcp/1"},
			want:  map[string]time.Duration{"/ip4/11.0.0.1/udp/1/quic-v1": tcpHeadStart},
			now:   []string{"/ip4/11.0.0.1/tcp/1"},
		},
		"only QUIC is not delayed": {
			addrs: []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
			now:   []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
		},
		"a relay over TCP does not count as TCP": {
			addrs: []string{relayed, "/ip4/11.0.0.1/udp/1/quic-v1"},
			want:  map[string]time.Duration{relayed: 100 * time.Millisecond},
			now:   []string{"/ip4/11.0.0.1/udp/1/quic-v1"},
		},
		"the addresses of a relay are dialled one after the other": {
			addrs: []string{relayed, alsoRelayed, lastRelayed},
			want:  map[string]time.Duration{relayed: circuitHeadStart, alsoRelayed: 2 * circuitHeadStart},
			now:   []string{lastRelayed},
		},
		"two relays are dialled at the same time": {
			addrs: []string{lastRelayed, otherRelay},
			want:  map[string]time.Duration{otherRelay: 0},
			now:   []string{lastRelayed},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var addrs []ma.Multiaddr
			for _, a := range test.addrs {
				addrs = append(addrs, ma.StringCast(a))
			}
			ranked := rankingFor(nil).rank(addrs)
			if len(ranked) != len(addrs) {
				t.Fatalf("got %d addresses, want %d", len(ranked), len(addrs))
			}
			for _, r := range ranked {
				if slices.Contains(test.now, r.Addr.String()) && r.Delay != 0 {
					t.Errorf("%s: got delay %v, want none", r.Addr, r.Delay)
				}
				if least := test.want[r.Addr.String()]; r.Delay < least {
					t.Errorf("%s: got delay %v, want at least %v", r.Addr, r.Delay, least)
				}
			}
		})
	}
}

// TestResourceLimitsMatchDocumentation checks the limits that docs/security.md states.
func TestResourceLimitsMatchDocumentation(t *testing.T) {
	type figures struct {
		connections, fromOthers, ofPeer, fromPeer rcmgr.LimitVal
		streams, ofProtocol, channels             rcmgr.LimitVal
		peersStreams, peersOfProtocol             rcmgr.LimitVal
		memory, peersMemory                       rcmgr.LimitVal64
		circuits                                  rcmgr.LimitVal // each with two streams
		circuitsMemory                            rcmgr.LimitVal64
	}
	for gib, want := range map[int64]figures{
		1:  {1024, 768, 24, 8, 32 << 10, 4096, 16 << 10, 4096, 256, 128 << 20, 64 << 20, 512, 64 << 20},
		16: {1024 + 256, 768 + 128, 24, 8, 36 << 10, 4096 + 1024, 17 << 10, 4096 + 512, 256, 128<<20 + 2<<30, 320 << 20, 512, 64 << 20},
	} {
		limits := resourceLimits(channels)
		l := limits.Scale(gib<<30/8, 1024) // like AutoScale
		p := l.ToPartialLimitConfig()
		got := figures{
			p.System.Conns, p.System.ConnsInbound, p.PeerDefault.Conns, p.PeerDefault.ConnsInbound,
			p.System.Streams, p.ProtocolDefault.Streams, p.Protocol[channels].Streams,
			p.PeerDefault.Streams, p.ProtocolPeerDefault.Streams,
			p.System.Memory, p.PeerDefault.Memory,
			p.Service[circuit.ServiceName].Streams / 2, p.Service[circuit.ServiceName].Memory,
		}
		if got != want {
			t.Errorf("with %d GiB: got %+v, want %+v", gib, got, want)
		}
	}
	if fewConns != 256 || manyConns != 384 {
		t.Errorf("trimming starts above %d connections and leaves %d, want 384 and 256", manyConns, fewConns)
	}
}

// TestConnectionsPerAddressAreLimited checks the limits in docs/security.md. Each address may have 64
// connections at a time, and may open 128 in a burst and then 2 per second.
func TestConnectionsPerAddressAreLimited(t *testing.T) {
	for name, addresses := range map[string][]string{ // addresses of one source
		"IPv4": {"/ip4/11.0.0.1/tcp/1"}, "of an IPv6 /56": {"/ip6/2a00:0:0:101::1/tcp/1", "/ip6/2a00:0:0:102::1/tcp/1"},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				manager, err := newResourceManager(channels, zerolog.Nop())
				if err != nil {
					t.Fatal(err)
				}
				defer manager.Close()
				// flood tries to open a number of connections, and returns those that are accepted.
				flood := func(tries int, from ...string) (open []network.ConnManagementScope) {
					for i := range tries {
						if c, err := manager.OpenConnection(network.DirInbound, true, ma.StringCast(from[i%len(from)])); err == nil {
							open = append(open, c)
						}
					}
					return open
				}
				expect := func(what string, open []network.ConnManagementScope, want int) {
					t.Helper()
					if len(open) != want {
						t.Errorf("%s: %d connections, want %d", what, len(open), want)
					}
					for _, c := range open {
						c.Done()
					}
				}
				expect("at a time", flood(100, addresses...), 64)
				expect("in a burst, after 100 attempts", flood(100, addresses...), 28)
				expect("from another address meanwhile", flood(1, "/ip4/11.0.0.2/tcp/1"), 1)
				time.Sleep(3 * time.Second)
				expect("3 s later", flood(100, addresses...), 6)
			})
		})
	}
}

// TestDialsFitTheConnectionLimitsPerAddress makes another peer open as many connections as it may. Meanwhile
// this peer has as many connections to it, and dials as many of its addresses as libp2p dials at a time.
func TestDialsFitTheConnectionLimitsPerAddress(t *testing.T) {
	manager, err := newResourceManager(channels, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	const id = p2ppeer.ID("other")
	connect := func(dir network.Direction) error {
		scope, err := manager.OpenConnection(dir, true, ma.StringCast("/ip4/127.0.0.1/tcp/1"))
		if err != nil {
			t.Fatal(err)
		}
		if err = scope.SetPeer(id); err != nil {
			scope.Done()
		}
		return err
	}
	for n := range connsPerPeer + swarm.DefaultPerPeerRateLimit {
		if err := connect(network.DirOutbound); err != nil {
			t.Fatalf("dial %d: %v", n+1, err)
		}
	}
	for n := range connsPerPeer {
		if err := connect(network.DirInbound); err != nil {
			t.Fatalf("inbound connection %d: %v", n+1, err)
		}
	}
	if connect(network.DirInbound) == nil {
		t.Errorf("more than %d connections of one peer were accepted", connsPerPeer)
	}
}

func TestOtherVersion(t *testing.T) {
	tests := map[string]bool{
		protocolVersion: false, "p2pmpi/999": true, "p2pmpi/": true, "ipfs/0.1.0": false, "": false,
	}
	for remote, want := range tests {
		if got := otherVersion(remote); got != want {
			t.Errorf("%q: got %v, want %v", remote, got, want)
		}
	}
}

func TestAnyPort(t *testing.T) {
	got := AnyPort(multiaddrs("/ip4/127.0.0.1/tcp/4001", "/ip6/::/udp/4001/quic-v1"))
	want := multiaddrs("/ip4/127.0.0.1/tcp/0", "/ip6/::/udp/0/quic-v1")
	if !slices.EqualFunc(got, want, ma.Multiaddr.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// farAway is a connection to a peer at a public address.
type farAway struct{ network.Conn }

func (farAway) RemotePeer() p2ppeer.ID        { return "somebody" }
func (farAway) RemoteMultiaddr() ma.Multiaddr { return ma.StringCast("/ip4/192.0.2.7/tcp/1") }

func newPeer(t *testing.T) (crypto.PrivKey, p2ppeer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

// TestLocalServicesAreNotDialled makes strangers name addresses of a service on this machine, in an open network
// and in a private one.
func TestLocalServicesAreNotDialled(t *testing.T) {
	for name, private := range map[string]bool{"open": false, "private": true} {
		t.Run(name, func(t *testing.T) {
			key, id := newPeer(t)
			members := membership.Config{Peer: id, Home: key}
			if private {
				owner, _ := newPeer(t)
				var err error
				if members.Invitation, err = membership.Invite(owner, "lab", "", id, time.Now(), time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			gate, err := membership.NewGate(members)
			if err != nil {
				t.Fatal(err)
			}
			dials := dialfilter.New()
			h := newHostOf(t, Config{Key: key, Listen: multiaddrs(onLoopback), Gate: gate, Dials: dials})
			dials.Met(farAway{})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			accepted := make(chan net.Conn, 64)
			go func() { // ends with l
				for {
					c, err := l.Accept()
					if err != nil {
						close(accepted)
						return
					}
					c.Close()
					accepted <- c
				}
			}()
			port := l.Addr().(*net.TCPAddr).Port
			for _, ip := range []string{"/ip4/127.0.0.1", "/ip6/::ffff:127.0.0.1", "/ip4/0.0.0.0", "/dns4/localhost"} {
				_, id := newPeer(t)
				h.Peerstore().AddAddr(id, ma.StringCast(fmt.Sprintf("%s/tcp/%d", ip, port)), time.Hour)
				if _, err := h.NewStream(t.Context(), id, "/test/1.0.0"); err == nil {
					t.Errorf("a stream was opened to %s", ip)
				}
			}
			l.Close()
			for range accepted {
				t.Error("the host has connected to the owner's service")
			}
		})
	}
}
