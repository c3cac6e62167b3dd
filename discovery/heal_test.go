package discovery

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// simulated is a simulated network of peers in virtual time, whose packets can be lost.
type simulated struct {
	t     *testing.T
	net   *simnet.Simnet
	peers []*Service

	mu   sync.Mutex
	lost func(from, to string) bool // by IP addresses
}

// simulate runs test with n peers. The first one introduces the others.
func simulate(t *testing.T, n int, test func(*testing.T, *simulated)) {
	virtualtime.Test(t, func(t *testing.T) {
		sim := &simulated{t: t, net: &simnet.Simnet{}}
		sim.net.LatencyFunc = func(p *simnet.Packet) time.Duration {
			sim.mu.Lock()
			defer sim.mu.Unlock()
			if sim.lost != nil && sim.lost(ipOf(p.From), ipOf(p.To)) {
				return 100 * 365 * 24 * time.Hour
			}
			return 20 * time.Millisecond
		}
		sim.net.Start()
		defer sim.net.Close()
		defer sim.close()
		for i := range n {
			cfg := testConfig()
			if i > 0 {
				cfg = testConfig(sim.peers[0].host)
			}
			sim.boot(i, nil, cfg)
		}
		for _, p := range sim.peers {
			if err := p.Introduced(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		test(t, sim)
	})
}

func ipOf(a net.Addr) string { return a.(*net.UDPAddr).IP.String() }

func simIP(i int) string { return simnet.IntToPublicIPv4(i).String() }

// boot starts peer i with its own identity, or with the given one.
func (sim *simulated) boot(i int, key crypto.PrivKey, cfg Config) *Service {
	sim.t.Helper()
	link := simnet.LinkSettings{BitsPerSecond: 20 * simlibp2p.OneMbps}
	options := []libp2p.Option{
		libp2p.ListenAddrStrings(fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", simIP(i))),
		simlibp2p.QUICSimnet(sim.net, simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}),
		libp2p.DisableIdentifyAddressDiscovery(), // it blocks virtual time
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableRelay(),
	}
	if key != nil {
		options = append(options, libp2p.Identity(key))
	}
	h, err := libp2p.New(options...)
	if err != nil {
		sim.t.Fatal(err)
	}
	s, err := New(sim.t.Context(), h, cfg)
	if err != nil {
		sim.t.Fatal(err)
	}
	sim.peers = append(sim.peers, s)
	return s
}

func (sim *simulated) close() {
	for _, p := range sim.peers {
		if err := p.Close(); err != nil {
			sim.t.Error(err)
		}
		p.host.Close()
	}
}

// lose drops the packets for which lost returns true. If lost is nil, no packets are dropped.
func (sim *simulated) lose(lost func(from, to string) bool) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.lost = lost
}

// wantSeen checks that each of the peers finds exactly these peers.
func wantSeen(t *testing.T, peers []*Service) {
	t.Helper()
	for i, p := range peers {
		candidates, considered, err := p.Candidates(t.Context(), Need{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(candidates) != len(peers) {
			t.Errorf("peer %d finds %d of %d: %v", i, len(candidates), len(peers), considered)
		}
		found := ids(candidates)
		for _, other := range peers {
			if !found[other.host.ID()] {
				t.Errorf("peer %d did not find %s", i, other.host.ID())
			}
		}
	}
}

// TestAllPeersGetCoordinates waits until peers know each other's coordinates without a search.
func TestAllPeersGetCoordinates(t *testing.T) {
	simulate(t, 4, func(t *testing.T, sim *simulated) {
		time.Sleep(20 * time.Minute)
		for i, p := range sim.peers {
			for _, other := range sim.peers {
				rtt, ok := p.offers.coordinates.estimate(other.host.ID())
				if other != p && (!ok || rtt < 20*time.Millisecond || rtt > 80*time.Millisecond) {
					t.Errorf("peer %d estimates %v, %t; want some 40ms", i, rtt, ok)
				}
			}
		}
	})
}

// TestPartitionedNetworkHeals splits a network in two for a while.
func TestPartitionedNetworkHeals(t *testing.T) {
	skip.Long(t)
	simulate(t, 6, func(t *testing.T, sim *simulated) {
		wantSeen(t, sim.peers)
		left := map[string]bool{simIP(0): true, simIP(1): true, simIP(2): true}
		sim.lose(func(from, to string) bool { return left[from] != left[to] })
		time.Sleep(20 * time.Minute)
		wantSeen(t, sim.peers[:3])
		wantSeen(t, sim.peers[3:])
		sim.lose(nil)
		time.Sleep(15*time.Minute + time.Minute) // more than the longest pause of package connected
		wantSeen(t, sim.peers)
	})
}
