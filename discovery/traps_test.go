package discovery

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// The tests of this file cover defaults of libp2p that would be harmful here.

// TestRecordsOutlivePeers finds the record of a peer that has left, and does not return it as a
// candidate.
func TestRecordsOutlivePeers(t *testing.T) {
	super := newService(t, newHost(t), testConfig())
	gone := boot(t, testConfig(super.host))
	s := boot(t, testConfig(super.host))
	ctx := testContext(t)
	if err := gone.advertise(ctx); err != nil {
		t.Fatal(err)
	}
	id := gone.host.ID()
	gone.Close()
	gone.host.Close()
	recorded := false
	for info := range s.found(ctx) {
		recorded = recorded || info.ID == id
	}
	if !recorded {
		t.Error("the record was dropped: this test and the code for it are no longer needed")
	}
	candidates, considered, err := s.Candidates(ctx, Need{All: true})
	if err != nil || len(candidates) != 2 || ids(candidates)[id] {
		t.Errorf("the candidates are %v, %v, want 2 without the closed peer", candidates, err)
	}
	if len(considered) != 1 || considered[0].Peer != id || considered[0].Reason != Unreachable && considered[0].Reason != Silent {
		t.Errorf("the search considered %v, want the closed peer", considered)
	}
}

// TestManyRecordsAreFound finds more records than the library's default limit.
func TestManyRecordsAreFound(t *testing.T) {
	const many = 150 // the default limit is 100
	super := newService(t, newHost(t), testConfig())
	s := boot(t, testConfig(super.host))
	ctx := testContext(t)
	digest := sha256.Sum256([]byte(namespace("test")))
	key := append([]byte{0x12, sha256.Size}, digest[:]...) // as a multihash
	for i := range many {
		_, id := newKey(t)
		if err := super.dht.ProviderStore().AddProvider(ctx, key, p2ppeer.AddrInfo{ID: id, Addrs: []ma.Multiaddr{ma.StringCast(fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", i+1))}}); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for range s.found(ctx) {
		found++
	}
	if found < many {
		t.Errorf("the search found %d records of %d", found, many)
	}
}

// TestPrivateDHT checks the protocols of a peer and of a submit-only peer. They never speak the public
// DHT protocol. The peer serves its own DHT even if its reachability is not known yet.
func TestPrivateDHT(t *testing.T) {
	super := newService(t, newHost(t), testConfig())
	cfg := testConfig(super.host)
	cfg.Offer, cfg.DHTServer = nil, false
	submitter := boot(t, cfg)
	for name, s := range map[string]*Service{"peer": super, "submitter": submitter} {
		serves := false
		for _, p := range s.host.Mux().Protocols() {
			serves = serves || p == "/p2pmpi/test/kad/1.0.0"
			if strings.HasPrefix(string(p), "/ipfs/kad") {
				t.Errorf("%s speaks %s", name, p)
			}
		}
		if serves != (s == super) {
			t.Errorf("%s serves the DHT: %t", name, serves)
		}
	}
	peer := boot(t, testConfig(super.host))
	for deadline := time.Now().Add(deadline); super.dht.RoutingTable().Find(peer.host.ID()) == ""; {
		if time.Now().After(deadline) {
			t.Fatal("a peer on loopback is in no routing table")
		}
	}
	if super.dht.RoutingTable().Find(submitter.host.ID()) != "" {
		t.Error("a submit-only peer is in the routing table")
	}
}

// TestLANNames: the names differ between networks, and from the default name of libp2p.
func TestLANNames(t *testing.T) {
	a, b := mdnsName("a"), mdnsName(strings.Repeat("b", maxToken))
	if a == b || a == "_p2p._udp" || mdnsName("a") != a {
		t.Errorf("got %s and %s", a, b)
	}
	if label, _, _ := strings.Cut(b, "."); len(label) > 63 {
		t.Errorf("label of %d bytes", len(label))
	}
}
