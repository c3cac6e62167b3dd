package discovery

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds every wait of these tests; no correct test comes near it.
const deadline = 15 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// newHost starts a loopback host with additional options.
func newHost(t testing.TB, opts ...libp2p.Option) host.Host {
	t.Helper()
	h, err := libp2p.New(append([]libp2p.Option{
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.DisableRelay(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func addrInfo(h host.Host) p2ppeer.AddrInfo {
	return p2ppeer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}
}

// knows adds the addresses of the given hosts to the address book of h.
func knows(h host.Host, others ...host.Host) {
	for _, o := range others {
		h.Peerstore().AddAddrs(o.ID(), o.Addrs(), peerstore.PermanentAddrTTL)
	}
}

// testConfig offers two slots on network "test" and does not use the LAN.
func testConfig(supernodes ...host.Host) Config {
	cfg := DefaultConfig()
	cfg.Network = "test"
	cfg.MDNS = false
	cfg.Offer = offering(2, 2)
	for _, h := range supernodes {
		cfg.Supernodes = append(cfg.Supernodes, addrInfo(h))
	}
	return cfg
}

func offering(total, free int) func() Offer {
	return func() Offer {
		return Offer{SlotsTotal: total, SlotsFree: free, Kinds: []string{"native"}}
	}
}

func newService(t *testing.T, h host.Host, cfg Config) *Service {
	t.Helper()
	s, err := New(t.Context(), h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// boot starts a host and its service, and waits for its introduction.
func boot(t *testing.T, cfg Config) *Service {
	t.Helper()
	s := newService(t, newHost(t), cfg)
	if err := s.Introduced(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

func ids(candidates []Candidate) map[p2ppeer.ID]bool {
	set := make(map[p2ppeer.ID]bool)
	for _, c := range candidates {
		set[c.AddrInfo.ID] = true
	}
	return set
}
