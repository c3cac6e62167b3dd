package discovery

import (
	"cmp"
	"math"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// maxHeard bounds how many peers one gathering considers: hints come from
// strangers and cost nothing to invent.
const maxHeard = 1024

// Need says how many candidates are wanted, and which.
type Need struct {
	Slots   int  // stop when so many free slots were found; 0 means 1
	PerPeer int  // slots of one peer that count, 0 for all (a job of n ranks can use n of each)
	All     bool // ask everybody, however many slots were found
	Busy    bool // peers that have nothing free now are candidates, too
	// Wide is for so long to ask everybody, however many slots were found: for a caller to whom
	// one who is far may be better than one who is near.
	Wide time.Duration
	Filter
}

// A Candidate is a peer that offers slots now.
type Candidate struct {
	AddrInfo p2ppeer.AddrInfo
	Offer    Offer
	RTT      time.Duration // the local peer's is 0
}

// phase is how far one peer has come in a gathering.
type phase byte

const (
	queued phase = iota
	asked
	settled
)

// A gathering is the pure core of Candidates: it is told which peers the
// sources name and what each answered, and decides whom to ask next, when to
// stop, and the order of the result.
//
// It asks at most parallel peers at a time, in the order in which it heard of
// them (the caller names the near ones first); of a crowd, in the order of the distances
// that are estimated. When the offers reach Slots it
// waits grace longer, so that a near peer which was asked late is not lost to a
// far one that was asked early; silent peers are not waited for. It
// asks nobody new once the offers reach Slots + 3 log2(Slots): the
// overbooking of P2P-MPI, which makes up for peers that refuse afterwards. While it is to be Wide
// it goes on to ask.
type gathering struct {
	need     Need
	parallel int
	grace    time.Duration
	estimate func(p2ppeer.ID) (rtt time.Duration, ok bool) // nil: nothing is known

	phases     map[p2ppeer.ID]phase
	queue      []p2ppeer.ID // in the phase queued, in order
	open       int          // in the phase asked
	ended      bool         // the sources name no more peers
	slots      int          // that count, in candidates
	enoughAt   time.Time    // when slots reached need.Slots; zero before
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

// heard notes that a source named id, and reports whether that was news.
func (g *gathering) heard(id p2ppeer.ID) bool {
	if _, known := g.phases[id]; known || len(g.phases) >= maxHeard {
		return false
	}
	if err := g.need.chosen(id); err != nil {
		g.phases[id] = settled
		g.considered = append(g.considered, Considered{id, NotChosen, err})
		return false
	}
	g.phases[id] = queued
	g.queue = append(g.queue, id)
	return true
}

// sourcesEnded notes that no source will name another peer.
func (g *gathering) sourcesEnded() { g.ended = true }

// ask returns the peers to ask now. Each must be answered with taken or
// refused later, unless the gathering is done first.
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

// crowd is from how many peers on those are asked first that are estimated to be near. All of
// fewer are asked in a moment.
const crowd = 64

// explore is how many peers are asked for each of which nothing is known: or nothing ever
// would be.
const explore = 8

// nearestFirst orders peers by their estimated distances. One in explore is the next of those
// without an estimate, which stay in their order.
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

// taken notes c's verified offer, which arrived at now.
func (g *gathering) taken(c Candidate, now time.Time) {
	if !g.settle(c.AddrInfo.ID) {
		return
	}
	if c.Offer.SlotsTotal == 0 { // a supernode that donates nothing
		g.considered = append(g.considered, Considered{c.AddrInfo.ID, OffersNothing, errNoSlots})
		return
	}
	if r := g.need.suits(&c.Offer); r != nil {
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

// refused notes that id is no candidate.
func (g *gathering) refused(id p2ppeer.ID, r *Refusal) {
	if g.settle(id) {
		g.considered = append(g.considered, Considered{id, r.Reason, r.Err})
	}
}

// settle ends the asking of id; a second answer counts for nothing.
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

// done reports whether nothing more is to be waited for at now.
func (g *gathering) done(now time.Time) bool {
	if g.open == 0 && (g.overbooked() || g.ended && len(g.queue) == 0) {
		return true
	}
	end, ok := g.deadline()
	return ok && !now.Before(end)
}

// deadline is when waiting ends although peers are still silent; there is
// none before enough slots were found.
func (g *gathering) deadline() (time.Time, bool) {
	if g.need.All || g.enoughAt.IsZero() {
		return time.Time{}, false
	}
	return g.enoughAt.Add(max(g.grace, g.need.Wide)), true
}

// result returns the candidates, nearest first, and why the others are none.
// Peers still silent are among the others; peers never asked are not.
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
