package discovery

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/coordinate"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// A plane contains peers in a plane, each behind an access link. Distances deviate from position and link
// by up to a tenth, so triangles do not close, as on the Internet.
type plane struct {
	x, y, link []float64 // in seconds
	seed       uint64
}

func newPlane(n int, seed uint64) *plane {
	w, rng := &plane{seed: seed}, rand.New(rand.NewPCG(seed, 0))
	for range n {
		region := float64(rng.IntN(6))
		w.x = append(w.x, 0.06*math.Cos(region)+0.008*rng.NormFloat64())
		w.y = append(w.y, 0.06*math.Sin(region)+0.008*rng.NormFloat64())
		w.link = append(w.link, 0.006*rng.ExpFloat64())
	}
	return w
}

func (w *plane) rtt(a, b int) time.Duration {
	if a == b {
		return 0
	}
	pair := rand.New(rand.NewPCG(w.seed, uint64(min(a, b))<<32+uint64(max(a, b))))
	way := math.Hypot(w.x[a]-w.x[b], w.y[a]-w.y[b]) + w.link[a] + w.link[b]
	return time.Duration(way * (0.9 + 0.2*pair.Float64()) * float64(time.Second))
}

// settled returns the coordinates of all peers after each has made the given number of random
// measurements.
func (w *plane) settled(rng *rand.Rand, measurements int) []*coordinates {
	all := make([]*coordinates, len(w.x))
	for i := range all {
		all[i] = newCoordinates()
	}
	for range measurements {
		for i, c := range all {
			if j := rng.IntN(len(all)); j != i {
				c.measured(id(j), all[j].here(), w.rtt(i, j))
			}
		}
	}
	return all
}

var measurements = flag.Int("measurements", 200, "how often each peer of TestSearchAsksTheNearestFirst has measured another")

// TestSearchAsksTheNearestFirst searches for 64 slots among 1,000 peers, which the searcher knows in random
// order, and checks how near the chosen ones are.
func TestSearchAsksTheNearestFirst(t *testing.T) {
	skip.Long(t)
	const n, slots, searcher = 1000, 64, 0
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newPlane(n, seed)
	all := w.settled(rng, *measurements)
	var order []p2ppeer.ID
	number := make(map[p2ppeer.ID]int)
	for _, i := range rng.Perm(n - 1) {
		order = append(order, id(i+1))
		number[id(i+1)] = i + 1
	}
	// The searcher has hearsay of this many peers, and has measured some of the others itself.
	knowing := func(heard int) func(p2ppeer.ID) (time.Duration, bool) {
		for _, i := range rng.Perm(n - 1)[:heard] {
			all[searcher].note(id(i+1), position{all[i+1].here(), false})
		}
		return all[searcher].estimate
	}
	mean := func(estimate func(p2ppeer.ID) (time.Duration, bool)) time.Duration {
		cfg := DefaultConfig()
		r := Rehearsal{
			Config: cfg, Need: Need{Slots: slots, PerPeer: 1}, Near: order, Estimate: estimate,
			Ask: func(id p2ppeer.ID) Reply {
				rtt := w.rtt(searcher, number[id])
				offer := Offer{SlotsTotal: 1, SlotsFree: 1}
				return Reply{5 * rtt, Candidate{AddrInfo: p2ppeer.AddrInfo{ID: id}, Offer: offer, RTT: rtt}, nil}
			},
		}
		var sum time.Duration
		for _, c := range r.Play().Candidates[:slots] {
			sum += c.RTT
		}
		return sum / slots
	}
	var truth []time.Duration
	for i := 1; i < n; i++ {
		truth = append(truth, w.rtt(searcher, i))
	}
	slices.Sort(truth)
	var best time.Duration
	for _, rtt := range truth[:slots] {
		best += rtt / slots
	}
	blind, some, most := mean(nil), mean(knowing(300)), mean(knowing(900))
	t.Logf("mean round trip to the 64 chosen: %v in any order, %v with a third of the coordinates known, %v with nine tenths, %v at best",
		blind, some, most, best)
	if some >= blind || most > (blind+best)/2 {
		t.Error("coordinates do not help enough")
	}
}

func TestNearestFirst(t *testing.T) {
	rtts := map[p2ppeer.ID]time.Duration{id(1): 3, id(3): 1, id(5): 2}
	estimate := func(p p2ppeer.ID) (time.Duration, bool) { rtt, ok := rtts[p]; return rtt, ok }
	got := nearestFirst([]p2ppeer.ID{id(0), id(1), id(2), id(3), id(4), id(5)}, estimate)
	want := []p2ppeer.ID{id(3), id(5), id(1), id(0), id(2), id(4)}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var crowd []p2ppeer.ID
	for i := range 100 {
		crowd = append(crowd, id(i))
		if i >= 10 {
			rtts[id(i)] = time.Duration(i)
		}
	}
	got = nearestFirst(crowd, estimate)
	if len(got) != 100 || got[explore-1] != id(0) && got[explore-1] != id(2) {
		t.Errorf("%d peers, number %d is %s: peers without an estimate come last", len(got), explore, got[explore-1])
	}
}

// TestFewPeersKeepTheirOrder: the order is unchanged if all peers can be asked within a moment.
func TestFewPeersKeepTheirOrder(t *testing.T) {
	for n, want := range map[int]p2ppeer.ID{crowd: id(0), crowd + 1: id(crowd)} {
		g := hearing(Need{All: true}, 1, n)
		g.estimate = func(p p2ppeer.ID) (time.Duration, bool) {
			i := slices.IndexFunc(g.queue, func(q p2ppeer.ID) bool { return q == p })
			return time.Duration(-i), true // the last one is the nearest
		}
		if got := g.ask(); got[0] != want {
			t.Errorf("%d peers: asks %s first, want %s", n, got[0], want)
		}
	}
}

func TestCheckCoordinate(t *testing.T) {
	for name, change := range map[string]func(*coordinate.Coordinate){
		"not a number":    func(c *coordinate.Coordinate) { c.Vec[0] = math.NaN() },
		"infinite":        func(c *coordinate.Coordinate) { c.Adjustment = math.Inf(1) },
		"too few":         func(c *coordinate.Coordinate) { c.Vec = c.Vec[1:] },
		"too many":        func(c *coordinate.Coordinate) { c.Vec = append(c.Vec, 0) },
		"too far":         func(c *coordinate.Coordinate) { c.Vec[1] = -11 },
		"too high":        func(c *coordinate.Coordinate) { c.Height = 11 },
		"negative height": func(c *coordinate.Coordinate) { c.Height = -1 },
		"large error":     func(c *coordinate.Coordinate) { c.Error = 2 },
		"negative error":  func(c *coordinate.Coordinate) { c.Error = -1 },
	} {
		c := newCoordinates().here()
		if err := checkCoordinate(c); err != nil {
			t.Fatal(err)
		}
		change(c)
		if checkCoordinate(c) == nil || checkCoordinate(fromPB(toPB(c))) == nil {
			t.Errorf("%s: accepted", name)
		}
		o := testOffer(id(1))
		if o.Position = c; o.valid() == nil {
			t.Errorf("%s: accepted in an offer", name)
		}
	}
}

func TestCoordinatesAreBoundedAndFirstHandIsPreferred(t *testing.T) {
	c, at := newCoordinates(), newCoordinates().here()
	far := at.Clone()
	far.Vec[0] = 9
	c.measured(id(0), at, time.Millisecond)
	c.note(id(0), position{far, false})
	if rtt, ok := c.estimate(id(0)); !ok || rtt > time.Second {
		t.Errorf("got %v, %t: hearsay replaced the peer's own position", rtt, ok)
	}
	for i := range 2 * maxCoordinates {
		c.note(id(i+1), position{at, false})
	}
	if len(c.known) != maxCoordinates || c.needsMore() {
		t.Errorf("%d coordinates are known, or more are needed", len(c.known))
	}
	c.measured(id(0), at, time.Millisecond)
	if told := c.hearsay(); len(told) != 1 || p2ppeer.ID(told[0].GetPeer()) != id(0) {
		t.Errorf("hearsay of %v, want the position that the peer has announced", told)
	}
	for i := range 10 * maxHearsay {
		c.measured(id(i), at, time.Millisecond)
	}
	if told := c.hearsay(); len(told) != maxHearsay {
		t.Errorf("hearsay of %d peers", len(told))
	}
}

// TestFalseCoordinateHasBoundedEffect: a peer claims a position very near to this peer's, so that an update
// moves this peer a million times as far as usual.
func TestFalseCoordinateHasBoundedEffect(t *testing.T) {
	c := newCoordinates()
	c.measured(id(0), newCoordinates().here(), 20*time.Millisecond)
	for range 3 {
		lie := c.here()
		lie.Vec[0] += 2e-6
		lie.Height, lie.Adjustment, lie.Error = maxSpan, -9.99, 0
		if err := checkCoordinate(lie); err != nil {
			t.Fatalf("the false coordinate is rejected: %v", err)
		}
		c.measured(id(1), lie, time.Millisecond)
		if err := checkCoordinate(c.here()); err != nil {
			t.Fatal(err)
		}
	}
	before := c.here()
	c.measured(id(2), newCoordinates().here(), 20*time.Millisecond)
	if here := c.here(); slices.Equal(here.Vec, before.Vec) && here.Height == before.Height {
		t.Error("honest peers no longer change the position of this peer")
	}
}

// FuzzBelieve passes arbitrary hearsay.
func FuzzBelieve(f *testing.F) {
	_, peer := newKey(f)
	data, err := proto.Marshal(&pb.Response{Hearsay: []*pb.Hearsay{{Peer: []byte(peer), Position: toPB(newCoordinates().here())}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m pb.Response
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		c := newCoordinates()
		c.applyHearsay(m.GetHearsay())
		for id := range c.known {
			if rtt, ok := c.estimate(id); !ok || rtt < 0 || rtt > 10*maxSpan*time.Second {
				t.Errorf("the estimated round-trip time to %s is %v", id, rtt)
			}
		}
	})
}

// TestOffersContainCoordinatesOfOtherPeers: a newcomer asks one peer and learns the position of another.
func TestOffersContainCoordinatesOfOtherPeers(t *testing.T) {
	super := newService(t, newHost(t), testConfig())
	other := boot(t, testConfig(super.host))
	ctx := testContext(t)
	if _, refusal := super.offers.ask(ctx, addrInfo(other.host)); refusal != nil {
		t.Fatal(refusal)
	}
	newcomer := newService(t, newHost(t), testConfig())
	if _, refusal := newcomer.offers.ask(ctx, addrInfo(super.host)); refusal != nil {
		t.Fatal(refusal)
	}
	for name, s := range map[string]*Service{"super": super, "other": other} {
		if _, ok := newcomer.offers.coordinates.estimate(s.host.ID()); !ok {
			t.Errorf("the position of %s is unknown", name)
		}
	}
}
