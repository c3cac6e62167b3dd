package discovery

import (
	"slices"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func TestFilterMatches(t *testing.T) {
	const gib = 1 << 30
	o := Offer{SlotsTotal: 4, MemoryBytes: 8 * gib, OS: "linux", Arch: "arm64"}
	unknown := o
	unknown.MemoryBytes = 0
	none := o
	none.SlotsTotal = 0
	for _, tt := range []struct {
		name   string
		filter Filter
		offer  Offer
		want   string
	}{
		{"no requirement", Filter{}, o, ""},
		{"just enough memory for each slot", Filter{MinMemory: 2 * gib}, o, ""},
		{"too little memory", Filter{MinMemory: 2*gib + 1}, o, "too small: 2.0 GiB of memory for each slot, 2.0 GiB wanted"},
		{"unknown memory", Filter{MinMemory: 1}, unknown, "too small: 0 B of memory for each slot, 1 B wanted"},
		{"no slots", Filter{MinMemory: 8 * gib}, none, ""},
		{"the platform", Filter{OS: "linux", Arch: "arm64"}, o, ""},
		{"another system", Filter{OS: "windows"}, o, "other platform: linux/arm64"},
		{"another processor", Filter{OS: "linux", Arch: "amd64"}, o, "other platform: linux/arm64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if r := tt.filter.matches(&tt.offer); r != nil {
				got = r.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestGatheringAsksOnlyMatchingPeers: excluded peers are not asked, and the search continues if the
// answering peers do not match.
func TestGatheringAsksOnlyMatchingPeers(t *testing.T) {
	g := hearing(Need{Slots: 1, Filter: Filter{OS: "plan9", Only: []p2ppeer.ID{id(1), id(2), id(3)}, Not: []p2ppeer.ID{id(3)}}}, 8, 5)
	if got, want := g.ask(), []p2ppeer.ID{id(1), id(2)}; !slices.Equal(got, want) {
		t.Fatalf("the search asks %v, want %v", got, want)
	}
	g.accepted(offerFrom(1, 9, 1), testNow)
	if _, enough := g.deadline(); enough {
		t.Error("the search ended with a peer that does not match")
	}
	suits := offerFrom(2, 1, 1)
	suits.Offer.OS = "plan9"
	g.accepted(suits, testNow)
	candidates, considered := g.result()
	if got, want := order(candidates), []p2ppeer.ID{id(2)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var got []Considered
	for _, c := range considered {
		got = append(got, Considered{Peer: c.Peer, Reason: c.Reason})
	}
	want := []Considered{
		{Peer: id(1), Reason: OtherPlatform},
		{Peer: id(0), Reason: NotChosen}, {Peer: id(3), Reason: NotChosen}, {Peer: id(4), Reason: NotChosen},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPeerIsFoundByID finds a peer by its ID alone; only other peers know its address.
func TestPeerIsFoundByID(t *testing.T) {
	super := newHost(t)
	newService(t, super, testConfig())
	chosen := boot(t, testConfig(super))
	s := boot(t, testConfig(super))
	id := chosen.host.ID()
	ctx := testContext(t)
	for {
		s.host.Network().ClosePeer(id)
		s.host.Peerstore().ClearAddrs(id)
		candidates, considered, err := s.Candidates(ctx, Need{All: true, Filter: Filter{Only: []p2ppeer.ID{id}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(candidates) == 1 && candidates[0].AddrInfo.ID == id {
			return
		}
		t.Log(considered) // the other peers do not know its address yet
	}
}
