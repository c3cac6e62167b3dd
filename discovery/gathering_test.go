package discovery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func id(i int) p2ppeer.ID { return p2ppeer.ID(fmt.Sprintf("peer-%04d", i)) }

// offerFrom returns peer i's answer: free slots, with a round-trip time of rtt milliseconds.
func offerFrom(i, free, rtt int) Candidate {
	return Candidate{
		AddrInfo: p2ppeer.AddrInfo{ID: id(i)},
		Offer:    Offer{SlotsTotal: 100, SlotsFree: free},
		RTT:      time.Duration(rtt) * time.Millisecond,
	}
}

// hearing returns a gathering that has heard of n peers, when all its sources have ended.
func hearing(need Need, parallel, n int) *gathering {
	g := newGathering(need, parallel, 100*time.Millisecond)
	for i := range n {
		g.addPeer(id(i))
	}
	g.sourcesEnded()
	return g
}

func order(candidates []Candidate) []p2ppeer.ID {
	var ids []p2ppeer.ID
	for _, c := range candidates {
		ids = append(ids, c.AddrInfo.ID)
	}
	return ids
}

func TestGatheringAsksInOrderWithBoundedParallelism(t *testing.T) {
	g := hearing(Need{All: true}, 2, 3)
	if got, want := g.ask(), []p2ppeer.ID{id(0), id(1)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := g.ask(); len(got) != 0 {
		t.Errorf("the search asks %v while two requests are open, want none", got)
	}
	g.refused(id(1), &Refusal{Reason: Unreachable})
	if got, want := g.ask(), []p2ppeer.ID{id(2)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGatheringOrdersNearestFirst(t *testing.T) {
	g := hearing(Need{All: true}, 8, 4)
	g.ask()
	for i, rtt := range []int{30, 10, 20, 10} {
		g.accepted(offerFrom(i, 1, rtt), testNow)
	}
	if !g.done(testNow) {
		t.Error("the search is not done although all peers have answered")
	}
	candidates, _ := g.result()
	if got, want := order(candidates), []p2ppeer.ID{id(1), id(3), id(2), id(0)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGatheringStops(t *testing.T) {
	after := func(ms int) time.Time { return testNow.Add(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		name  string
		need  Need
		free  []int // slots that the first peers offer; the others of the 4 peers are silent
		ended bool
		at    time.Time
		want  bool
	}{
		{"not while a peer may still answer", Need{Slots: 4}, []int{1, 1, 1}, true, after(1e6), false},
		{"not before the grace is over", Need{Slots: 2}, []int{1, 1}, true, after(99), false},
		{"when the grace is over", Need{Slots: 2}, []int{1, 1}, true, after(100), true},
		{"although the sources continue", Need{Slots: 2}, []int{1, 1}, false, after(100), true},
		{"at once when all have answered", Need{Slots: 9}, []int{1, 0, 1, 1}, true, testNow, true},
		{"not while the sources continue", Need{Slots: 9}, []int{1, 0, 1, 1}, false, after(1e6), false},
		{"at once when overbooked and no request is open", Need{Slots: 2}, []int{5, 1, 1, 1}, false, testNow, true},
		{"not before all have answered if all are wanted", Need{Slots: 2, All: true}, []int{9, 9}, true, after(1e6), false},
		{"not when overbooked while Wide lasts", Need{Slots: 2, Wide: time.Second}, []int{5, 1, 1, 1}, false, after(999), false},
		{"when Wide is over", Need{Slots: 2, Wide: time.Second}, []int{5, 1, 1}, false, after(1000), true},
		{"at once when all have answered, even if Wide lasts", Need{Slots: 2, Wide: time.Second}, []int{5, 1, 1, 1}, true, testNow, true},
		{"counting at most n slots of a peer", Need{Slots: 3, PerPeer: 1}, []int{9, 9}, true, after(1e6), false},
		{"one slot by default", Need{}, []int{1}, true, after(100), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := hearing(tt.need, 8, 4)
			g.ended = tt.ended
			g.ask()
			for i, free := range tt.free {
				g.accepted(offerFrom(i, free, 1), testNow)
			}
			if got := g.done(tt.at); got != tt.want {
				t.Errorf("got done %t, want %t", got, tt.want)
			}
		})
	}
}

func TestGatheringStopsAskingOnceOverbooked(t *testing.T) {
	g := hearing(Need{Slots: 4}, 1, 3)
	g.ask()
	g.accepted(offerFrom(0, 9, 1), testNow) // 4 + 3 log2(4) = 10
	if got := g.ask(); len(got) != 1 {
		t.Errorf("got %v at 9 slots, want one more peer asked", got)
	}
	g.accepted(offerFrom(1, 1, 1), testNow)
	if got := g.ask(); len(got) != 0 {
		t.Errorf("the search asks %v at 10 slots, want none", got)
	}
	if !g.done(testNow) {
		t.Error("the search is not done")
	}
}

func TestGatheringReportsRefusals(t *testing.T) {
	g := hearing(Need{Slots: 9}, 8, 3)
	g.ask()
	g.accepted(offerFrom(0, 0, 1), testNow)
	g.refused(id(1), &Refusal{Reason: OtherVersion})
	candidates, considered := g.result()
	if len(candidates) != 0 {
		t.Errorf("got %v, want no candidates", candidates)
	}
	var got []Reason
	for _, c := range considered {
		got = append(got, c.Reason)
	}
	if want := []Reason{Full, OtherVersion, Silent}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGatheringIgnoresUnrequestedAnswers(t *testing.T) {
	g := hearing(Need{Slots: 9}, 1, 2)
	g.accepted(offerFrom(1, 5, 1), testNow) // heard of, but not asked
	g.accepted(offerFrom(7, 5, 1), testNow) // never heard of
	g.ask()
	g.accepted(offerFrom(0, 1, 1), testNow)
	g.accepted(offerFrom(0, 1, 1), testNow) // twice
	if candidates, _ := g.result(); len(candidates) != 1 || g.slots != 1 || g.open != 0 {
		t.Errorf("got %v, %d slots, %d open", candidates, g.slots, g.open)
	}
}

func TestGatheringIsBounded(t *testing.T) {
	g := hearing(Need{All: true}, 8, 10*maxHeard)
	if len(g.phases) != maxHeard || len(g.queue) != maxHeard {
		t.Errorf("the search considers %d peers, want %d", len(g.phases), maxHeard)
	}
}

// TestGatheringAlwaysEnds answers in random order and checks that every peer is asked at most once, that at
// most parallel peers are asked at a time, and that the result contains every asked peer.
func TestGatheringAlwaysEnds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		n, parallel := rng.IntN(50), 1+rng.IntN(5)
		g := hearing(Need{Slots: 1 + rng.IntN(40), All: rng.IntN(2) == 0}, parallel, n)
		times := make(map[p2ppeer.ID]int)
		var open []p2ppeer.ID
		for !g.done(testNow) {
			for _, id := range g.ask() {
				times[id]++
				open = append(open, id)
			}
			if len(open) == 0 || len(open) > parallel {
				t.Fatalf("%d of %d requests open, not done", len(open), parallel)
			}
			i := rng.IntN(len(open))
			if rng.IntN(3) == 0 {
				g.refused(open[i], &Refusal{Reason: Silent})
			} else {
				g.accepted(Candidate{AddrInfo: p2ppeer.AddrInfo{ID: open[i]}, Offer: Offer{SlotsFree: rng.IntN(4)}}, testNow)
			}
			open = slices.Delete(open, i, i+1)
		}
		candidates, considered := g.result()
		if len(candidates)+len(considered) != len(times) || g.need.All && len(times) != n {
			t.Fatalf("%d candidates and %d rejected peers, of %d asked and %d in all", len(candidates), len(considered), len(times), n)
		}
		for id, k := range times {
			if k != 1 {
				t.Fatalf("%s asked %d times", id, k)
			}
		}
	}
}

// TestPeerWithoutSlotsOffersNothing: a supernode that donates no slots is not reported as busy.
func TestPeerWithoutSlotsOffersNothing(t *testing.T) {
	g := hearing(Need{Slots: 1, Filter: Filter{OS: "another"}}, 8, 1)
	g.ask()
	c := offerFrom(0, 0, 1)
	c.Offer.SlotsTotal = 0
	g.accepted(c, time.Time{})
	candidates, considered := g.result()
	if len(candidates) != 0 || len(considered) != 1 || considered[0].Reason != OffersNothing {
		t.Errorf("candidates %v, considered %v; want one that offers nothing", candidates, considered)
	}
}
