package filetransfer

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	mbit      = 1e6 / 8 // bytes per second
	latency   = 20 * time.Millisecond
	sliceSize = pieceSize / 8
)

// A world simulates an origin and peers in virtual time: real plans and a real ledger, over links whose
// outgoing and incoming rates are shared evenly. Host 0 is the origin.
type world struct {
	now    time.Duration
	events events
	order  int
	hosts  []*simHost
	units  int
	ledger *ledger
	sent   int // number of slices that the origin has sent
	done   int // number of complete peers
	took   time.Duration
	sites  []*simSite
}

// A simSite is a site with one uplink, which its hosts share.
type simSite struct {
	up, down       float64 // bytes per second
	upFree, inFree time.Duration
	sent           int // number of slices that have left the site
}

type simHost struct {
	w        *world
	number   int
	up, down float64 // bytes per second
	lies     bool    // the host passes on wrong data
	stalls   bool    // the host never answers
	plan     *plan
	have     bitset
	peers    []int // hosts by source: 0 is the origin
	banned   map[int]bool
	site     *simSite      // nil for a site with only this host
	idle     bool          // the host announces a fetch, but requests nothing
	pause    time.Duration // delay before each slice that the host sends

	queue  [][]*sending // per destination host, served in turn
	turn   [2]int
	busy   [2]bool       // the link within the site is busy; the link out of the site is busy
	inFree time.Duration // time when the incoming link is free
	doneAt time.Duration
}

// A sending is a request at the host that serves it.
type sending struct {
	unit   int
	fresh  bool
	slices int // number of slices sent
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now + d, w.order, do})
}

// newWorld returns a world with peers that fetch units pieces from the origin.
func newWorld(peers, units int, seed uint64, originUp float64) *world {
	w := &world{units: units, ledger: newLedger()}
	for i := range peers + 1 {
		h := &simHost{w: w, number: i, up: 1000 * mbit, down: 1000 * mbit, have: newBitset(units), banned: map[int]bool{}}
		h.queue = make([][]*sending, peers+1)
		w.hosts = append(w.hosts, h)
		if i == origin {
			h.up = originUp
			continue
		}
		h.peers = []int{origin}
		for _, n := range Neighbours(i-1, peers) {
			h.peers = append(h.peers, n+1)
		}
		h.plan = newPlan(units, newBitset(units), len(h.peers)-1, seed+uint64(i), 0)
	}
	return w
}

// atSites places the origin at its own site, and the given number of peers at each other site. Within a
// site all links have the same rates.
func (w *world) atSites(each int, up, down float64) {
	for i, h := range w.hosts {
		if i == origin || (i-1)%each == 0 {
			w.sites = append(w.sites, &simSite{up: up, down: down})
		}
		h.site = w.sites[len(w.sites)-1]
		h.up = 1000 * mbit
	}
	for _, h := range w.hosts[1:] {
		near := map[int]uint64{}
		for id, n := range h.peers {
			if w.hosts[n].site == h.site {
				near[id] = siteKey(holderOf(n).peer)
			}
		}
		h.plan.place(siteKey(holderOf(h.number).peer), near)
	}
}

// copiesOut returns how many copies of the content have left a site, or all sites.
func (w *world) copiesOut(sites ...*simSite) float64 {
	sent := 0
	for _, s := range sites {
		sent += s.sent
	}
	return float64(sent) * sliceSize / (float64(w.units) * pieceSize)
}

// run runs until every peer is complete, or the limit is reached.
func (w *world) run(limit time.Duration) {
	for _, h := range w.hosts[1:] {
		w.after(latency, func() {
			for id := range h.peers {
				h.plan.connected(id, w.now)
				if id != origin {
					h.plan.has(id, w.hosts[h.peers[id]].have, nil)
				}
			}
			h.pump()
		})
		var tick func()
		tick = func() {
			if h.plan.complete() {
				return
			}
			h.plan.tick(w.now)
			h.pump()
			w.after(tickEvery, tick)
		}
		w.after(tickEvery, tick)
	}
	for len(w.events) > 0 && w.done < len(w.hosts)-1 && w.now < limit {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.took = w.now
}

func holderOf(number int) holder { return holder{peer: p2ppeer.ID(fmt.Sprint(number))} }

// hog makes a peer request every unit from the origin repeatedly, confirm none and pass none on.
func (w *world) hog(number int) {
	h := w.hosts[number]
	all := newBitset(w.units)
	for u := range w.units {
		all.add(u)
	}
	h.plan = newPlan(w.units, all, 0, 0, 0)
	w.done++
	var again func()
	again = func() {
		for u := range w.units {
			if w.ledger.grant(u, holderOf(number), w.now) {
				w.ledger.delivered(u, holderOf(number), w.now)
			}
		}
		w.ledger.sent(holderOf(number), w.now)
		w.after(10*time.Second, again)
	}
	again()
}

// pump sends all possible requests.
func (h *simHost) pump() {
	for id := range h.peers {
		h.ask(id)
	}
}

func (h *simHost) ask(id int) {
	for !h.idle {
		u, fresh, ok := h.plan.next(id, h.w.now)
		if !ok {
			return
		}
		src := h.w.hosts[h.peers[id]]
		h.w.after(latency, func() {
			src.queue[h.number] = append(src.queue[h.number], &sending{unit: u, fresh: fresh})
			src.serve()
		})
	}
}

// serve sends the next slices.
func (h *simHost) serve() {
	for way := range h.busy {
		h.serveWay(way)
	}
}

// way returns the direction of a host: 0 at the same site, 1 at another site.
func (h *simHost) way(to *simHost) int {
	if h.site != nil && h.site == to.site {
		return 0
	}
	return 1
}

// send records that a slice is sent now. It returns how long the sender is busy with the slice, and when the
// slice arrives.
func (h *simHost) send(to *simHost) (out, in time.Duration) {
	now := h.w.now
	took := func(rate float64) time.Duration { return time.Duration(sliceSize / rate * float64(time.Second)) }
	out, delay := took(h.up)+h.pause, latency
	if h.way(to) == 0 {
		delay = latency / 100
	} else if h.site != nil {
		h.site.upFree = max(h.site.upFree, now) + took(h.site.up)
		h.site.sent++
		out = max(out, h.site.upFree-now)
	}
	in = now + out + delay
	if h.way(to) == 1 && to.site != nil {
		to.site.inFree = max(to.site.inFree+took(to.site.down), in)
		in = to.site.inFree
	}
	to.inFree = max(to.inFree+took(to.down), in)
	return out, to.inFree
}

// serveWay sends the next slice in one direction to the next host in turn.
func (h *simHost) serveWay(way int) {
	w := h.w
	for range h.queue {
		if h.busy[way] || h.stalls {
			return
		}
		h.turn[way] = (h.turn[way] + 1) % len(h.queue)
		to := w.hosts[h.turn[way]]
		if len(h.queue[to.number]) == 0 || h.way(to) != way {
			continue
		}
		s := h.queue[to.number][0]
		if h.number == origin && s.slices == 0 && !s.fresh {
			w.ledger.book(s.unit, holderOf(to.number), w.now)
		}
		if s.fresh && s.slices == 0 && !w.ledger.grant(s.unit, holderOf(to.number), w.now) {
			h.queue[to.number] = h.queue[to.number][1:]
			taken := w.ledger.taken(w.units, w.now)
			w.after(max(latency, to.inFree-w.now), func() { to.plan.declined(taken, w.now); to.ask(origin) })
			continue
		}
		s.slices++
		last := s.slices*sliceSize == pieceSize
		if last {
			h.queue[to.number] = h.queue[to.number][1:]
		}
		if h.number == origin {
			w.sent++
			w.ledger.sent(holderOf(to.number), w.now)
			if last {
				w.ledger.delivered(s.unit, holderOf(to.number), w.now)
			}
		}
		h.busy[way] = true
		out, in := h.send(to)
		w.after(out, func() { h.busy[way] = false; h.serve() })
		w.after(in-w.now, func() { to.take(h, s, last) })
		return
	}
}

// take processes an arrived slice.
func (h *simHost) take(from *simHost, s *sending, last bool) {
	id := slices.Index(h.peers, from.number)
	if h.banned[id] {
		return
	}
	h.plan.sending(id, h.w.now)
	if !last {
		return
	}
	if from.lies {
		h.banned[id] = true
		h.plan.disconnected(id)
		h.pump()
		return
	}
	if first := h.plan.sources[id].asked[0].unit; first != s.unit {
		panic(fmt.Sprintf("unit %d came, %d was asked for first", s.unit, first))
	}
	if from.number == origin {
		h.w.after(latency, func() { h.w.ledger.got(s.unit, holderOf(h.number), h.w.now) })
	}
	complete := h.plan.complete()
	h.plan.arrived(id, h.w.now)
	h.have.add(s.unit)
	if h.plan.complete() && !complete {
		h.doneAt = h.w.now
		h.w.done++
	}
	for _, n := range h.peers[1:] {
		f := h.w.hosts[n]
		h.w.after(latency, func() {
			if id := slices.Index(f.peers, h.number); !f.banned[id] {
				f.plan.has(id, nil, []uint32{uint32(s.unit)})
				f.ask(id)
			}
		})
	}
	h.ask(id)
}

// copies returns how many copies of the content the origin has sent.
func (w *world) copies() float64 {
	return float64(w.sent) * sliceSize / (float64(w.units) * pieceSize)
}

// TestSwarm checks staging in virtual time. The origin sends a file to all peers in 1.5 times the time of
// one copy, and sends at most 1.6 copies, even if peers are slow, stall or lie.
func TestSwarm(t *testing.T) {
	tests := []struct {
		name   string
		peers  int
		units  int
		copies float64
		times  float64 // multiple of the time of one copy, or 0 to skip the check
		change func(w *world, rng *rand.Rand)
	}{
		{name: "one", peers: 1, units: 256, copies: 1, times: 1.1},
		{name: "16", peers: 16, units: 256, copies: 1.6, times: 1.5},
		{name: "64", peers: 64, units: 64, copies: 1.6, times: 1.5},
		{name: "256", peers: 256, units: 128, copies: 1.6, times: 1.5},
		{name: "small file", peers: 16, units: 16, copies: 1.6},
		{name: "fewer units than peers", peers: 64, units: 4, copies: 1.6},
		{name: "mixed rates", peers: 16, units: 64, copies: 1.6, change: func(w *world, rng *rand.Rand) {
			for _, h := range w.hosts[1:] {
				h.up, h.down = (5+200*rng.Float64())*mbit, (20+500*rng.Float64())*mbit
			}
		}},
		{name: "one stalls", peers: 16, units: 128, copies: 1.6, change: func(w *world, _ *rand.Rand) { w.hosts[3].stalls = true }},
		{name: "one lies", peers: 16, units: 128, copies: 1.6, change: func(w *world, _ *rand.Rand) { w.hosts[3].lies = true }},
		{name: "one hogs", peers: 16, units: 512, copies: 1.6, times: 8, change: func(w *world, _ *rand.Rand) { w.hog(3) }},
		{name: "four of 64 stall, four lie", peers: 64, units: 64, copies: 1.6, change: func(w *world, _ *rand.Rand) {
			for i := range 4 {
				w.hosts[5+7*i].stalls = true
				w.hosts[8+7*i].lies = true
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 1))
			const up = 100 * mbit
			w := newWorld(tt.peers, tt.units, seed, up)
			if tt.change != nil {
				tt.change(w, rng)
			}
			one := time.Duration(float64(tt.units) * pieceSize / up * float64(time.Second))
			w.run(100 * one)
			t.Logf("seed %d: %v, one copy takes %v: %.2f of it; the origin sends %.2f copies",
				seed, w.took, one, w.took.Seconds()/one.Seconds(), w.copies())
			if w.done < tt.peers {
				t.Fatalf("%d of %d peers are complete after %v", w.done, tt.peers, w.now)
			}
			if got := w.copies(); got > tt.copies {
				t.Errorf("the origin sent %.2f copies, want at most %.2f", got, tt.copies)
			}
			if got := w.took.Seconds() / one.Seconds(); tt.times > 0 && got > tt.times {
				t.Errorf("it took %.2f times as long as one copy, want at most %.2f", got, tt.times)
			}
		})
	}
}

// TestSwarmAtSites simulates peers at sites with slow uplinks. One copy enters each site, and the other peers
// of the site get their units from there. A neighbour that has failed, lies, or fetches nothing costs a bounded
// time.
func TestSwarmAtSites(t *testing.T) {
	const up = 10 * mbit
	tests := []struct {
		name               string
		sites, each, units int
		copies             float64 // copies that leave all sites, per necessary copy
		times              float64 // multiple of the time of one copy
		change             func(w *world)
	}{
		{name: "three of two", sites: 3, each: 2, units: 64, copies: 1.3, times: 1.4},
		{name: "three of two, a small file", sites: 3, each: 2, units: 16, copies: 1.3, times: 2.2},
		{name: "three of two, a large file", sites: 3, each: 2, units: 512, copies: 1.1, times: 1.1},
		{name: "two of eight", sites: 2, each: 8, units: 64, copies: 1.3, times: 1.4},
		{name: "five of three", sites: 5, each: 3, units: 64, copies: 1.3, times: 1.5},
		{name: "one never answers", sites: 3, each: 2, units: 64, copies: 1.6, times: 2.5, change: func(w *world) { w.hosts[3].stalls = true }},
		{name: "one lies", sites: 3, each: 2, units: 64, copies: 1.5, times: 2, change: func(w *world) { w.hosts[3].lies = true }},
		{name: "one fetches nothing", sites: 3, each: 2, units: 64, copies: 1.3, times: 2, change: func(w *world) { w.hosts[3].idle = true; w.done++ }},
		{name: "one sends slowly", sites: 3, each: 2, units: 256, copies: 1.6, times: 2.5, change: func(w *world) { w.hosts[3].pause = 225 * time.Millisecond }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			w := newWorld(tt.sites*tt.each, tt.units, seed, up)
			w.atSites(tt.each, up, 2*up)
			if tt.change != nil {
				tt.change(w)
			}
			one := time.Duration(float64(tt.units) * pieceSize / up * float64(time.Second))
			w.run(100 * one)
			copies := w.copiesOut(w.sites...) / float64(tt.sites)
			t.Logf("seed %d: %v, one copy takes %v: %.2f of it; %.2f copies leave the origin's site, %.2f all sites for each that is needed",
				seed, w.took, one, w.took.Seconds()/one.Seconds(), w.copiesOut(w.sites[0]), copies)
			if w.done < tt.sites*tt.each {
				t.Fatalf("%d of %d peers are complete after %v", w.done, tt.sites*tt.each, w.now)
			}
			if copies > tt.copies {
				t.Errorf("%.2f copies left the sites for each necessary one, want at most %.2f", copies, tt.copies)
			}
			if got := w.took.Seconds() / one.Seconds(); got > tt.times {
				t.Errorf("it took %.2f times as long as one copy, want at most %.2f", got, tt.times)
			}
		})
	}
}
