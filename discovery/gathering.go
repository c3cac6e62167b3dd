package discovery

import (
	"cmp"
	"math"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// maxHeard bounds how many peers one gathering considers, because strangers can invent hints at no cost.
const maxHeard = 1024

// Need states how many slots a search needs, and from which peers.
type Need struct {
	Slots   int  // free slots after which the search stops; 0 means 1
	PerPeer int  // slots that count per peer, such as n for a job of n ranks; 0 means all
	All     bool // ask all peers, regardless of how many slots were found
	Busy    bool // accept peers that have nothing free now
	// Wide is how long to continue asking all peers, regardless of how many slots were found. A caller
	// that may prefer a distant peer to a near one sets it.
	Wide time.Duration
	Filter
}

// A Candidate is a peer that offers slots now.
type Candidate struct {
	AddrInfo p2ppeer.AddrInfo
	Offer    Offer
	RTT      time.Duration // zero for the local peer
}

// phase is the progress of one peer in a gathering.
type phase byte

const (
	queued phase = iota
	asked
	settled
)

// A gathering is the pure core of Candidates. Its inputs are the peers that the sources name and the
// answer of each. It decides which peers to ask next, when to stop, and the order of the result.
//
// A gathering asks at most parallel peers at a time, in the order in which it heard of them; the caller
// names near ones first. In a large network the order is that of the estimated distances. Once the offers
// reach Slots, the gathering waits grace longer, so that a distant peer asked early does not displace a near
// one asked late. After that it does not wait for silent peers.
//
// A gathering asks no further peers once the offers reach Slots + 3 log2(Slots). This is the overbooking of
// P2P-MPI, which makes up for peers that refuse later. While Wide lasts, the gathering continues to ask.
type gathering struct {
	need     Need
	parallel int
	grace    time.Duration
	estimate func(p2ppeer.ID) (rtt time.Duration, ok bool) // nil if no distances are known

	phases     map[p2ppeer.ID]phase
	queue      []p2ppeer.ID // peers in phase queued, in order
	open       int          // number of peers in phase asked
	ended      bool         // the sources will name no more peers
	slots      int          // slots of the candidates, as far as they count
	enoughAt   time.Time    // time when slots reached need.Slots, or zero before
	candidates []Candidate
	considered []Considered
}

func newGathering(need Need, parallel int, grace time.Duration) *gathering {
	need.Slots = max(need.Slots, 1)
	return &gathering{
		need:     need,
		parallel: parallel,
		grace:    grace,
		phases:   make(map[p2ppeer.ID]phase),
	}
}

// addPeer records that a source named id, and reports whether id is new and should be asked.
func (g *gathering) addPeer(id p2ppeer.ID) bool {
	if _, known := g.phases[id]; known || len(g.phases) >= maxHeard {
		return false
	}
	if err := g.need.selects(id); err != nil {
		g.phases[id] = settled
		g.considered = append(g.considered, Considered{id, NotChosen, err})
		return false
	}
	g.phases[id] = queued
	g.queue = append(g.queue, id)
	return true
}

// sourcesEnded records that no source will name another peer.
func (g *gathering) sourcesEnded() { g.ended = true }

// ask returns the peers to ask now. The caller must report the answer of each with accepted or refused,
// unless the gathering is done first.
func (g *gathering) ask() []p2ppeer.ID {
	if g.overbooked() {
		return nil
	}
	n := min(len(g.queue), g.parallel-g.open)
	if n > 0 && len(g.phases) > crowd && g.estimate != nil {
		g.queue = nearestFirst(g.queue, g.estimate)
	}
	now := g.queue[:n:n]
	g.queue = g.queue[n:]
	g.open += n
	for _, id := range now {
		g.phases[id] = asked
	}
	return now
}

// crowd is the number of known peers above which ask goes by estimated distance. Fewer peers are all
// asked within a moment.
const crowd = 64

// explore sets the share of asked peers that have no estimate: one in explore. Otherwise their distances
// would never become known.
const explore = 8

// nearestFirst orders peers by estimated distance. Every explore-th one is the next peer without an
// estimate; these keep their order.
func nearestFirst(peers []p2ppeer.ID, estimate func(p2ppeer.ID) (time.Duration, bool)) []p2ppeer.ID {
	type estimated struct {
		id  p2ppeer.ID
		rtt time.Duration
	}
	var known []estimated
	var unknown []p2ppeer.ID
	for _, id := range peers {
		if rtt, ok := estimate(id); ok {
			known = append(known, estimated{id, rtt})
		} else {
			unknown = append(unknown, id)
		}
	}
	slices.SortStableFunc(known, func(a, b estimated) int { return cmp.Compare(a.rtt, b.rtt) })
	out := make([]p2ppeer.ID, 0, len(peers))
	for len(known) > 0 || len(unknown) > 0 {
		if len(known) == 0 || len(unknown) > 0 && len(out)%explore == explore-1 {
			out, unknown = append(out, unknown[0]), unknown[1:]
		} else {
			out, known = append(out, known[0].id), known[1:]
		}
	}
	return out
}

// accepted records c's verified offer, which arrived at now.
func (g *gathering) accepted(c Candidate, now time.Time) {
	if !g.settle(c.AddrInfo.ID) {
		return
	}
	if c.Offer.SlotsTotal == 0 { // for instance a supernode that donates nothing
		g.considered = append(g.considered, Considered{c.AddrInfo.ID, OffersNothing, errNoSlots})
		return
	}
	if r := g.need.matches(&c.Offer); r != nil {
		g.considered = append(g.considered, Considered{c.AddrInfo.ID, r.Reason, r.Err})
		return
	}
	if why := c.Offer.full(); why != "" && !g.need.Busy {
		g.considered = append(g.considered, Considered{c.AddrInfo.ID, Full, refuse(Full, "%s", why).Err})
		return
	}
	g.candidates = append(g.candidates, c)
	g.slots += g.counting(c.Offer)
	if g.enoughAt.IsZero() && g.slots >= g.need.Slots {
		g.enoughAt = now
	}
}

func (g *gathering) refused(id p2ppeer.ID, r *Refusal) {
	if g.settle(id) {
		g.considered = append(g.considered, Considered{id, r.Reason, r.Err})
	}
}

// settle ends the asking of id. It returns false if id was not being asked, so a second answer is
// ignored.
func (g *gathering) settle(id p2ppeer.ID) bool {
	if p, known := g.phases[id]; !known || p != asked {
		return false
	}
	g.phases[id] = settled
	g.open--
	return true
}

func (g *gathering) counting(o Offer) int {
	if g.need.PerPeer > 0 {
		return min(o.Free(), g.need.PerPeer)
	}
	return o.Free()
}

func (g *gathering) overbooked() bool {
	extra := int(math.Ceil(3 * math.Log2(float64(g.need.Slots))))
	return !g.need.All && g.need.Wide == 0 && g.slots >= g.need.Slots+extra
}

func (g *gathering) done(now time.Time) bool {
	if g.open == 0 && (g.overbooked() || g.ended && len(g.queue) == 0) {
		return true
	}
	end, ok := g.deadline()
	return ok && !now.Before(end)
}

// deadline returns when to stop waiting for silent peers. There is no deadline before enough slots were
// found.
func (g *gathering) deadline() (time.Time, bool) {
	if g.need.All || g.enoughAt.IsZero() {
		return time.Time{}, false
	}
	return g.enoughAt.Add(max(g.grace, g.need.Wide)), true
}

// result returns the candidates, nearest first, and the reason why each other asked peer is not a
// candidate. The others include silent peers.
func (g *gathering) result() ([]Candidate, []Considered) {
	slices.SortFunc(g.candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.AddrInfo.ID, b.AddrInfo.ID))
	})
	for id, p := range g.phases {
		if p == asked {
			g.considered = append(g.considered, Considered{Peer: id, Reason: Silent})
		}
	}
	slices.SortFunc(g.considered, func(a, b Considered) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Peer, b.Peer))
	})
	return g.candidates, g.considered
}
