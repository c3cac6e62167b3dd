package reunion

import (
	"net/netip"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// askPeriod is how often a connection is asked whether it works: at every other look, also
	// at a late one, since the question is what the other end hears of a connection that is
	// full in its direction. askAtLeast is how long it may be silent after that at least,
	// askAtMost at most. A quarter of what the job bears leaves time to come back.
	askPeriod  = 3 * time.Second / 2
	askAtLeast = 3 * time.Second
	askAtMost  = 10 * time.Second
	askPart    = 4

	// Between two dials of a peer, at first and at most.
	dialFirst = 250 * time.Millisecond
	dialMost  = 2 * time.Second
)

// A watch decides which connections to ask, to drop and to make anew. It is a pure core.
type watch struct {
	peers map[p2ppeer.ID]*partner
	hops  map[p2ppeer.ID]*hop // relays that partners are connected through
	had   []netip.Addr        // this machine's addresses at the last look at which they were known
	gone  map[netip.Addr]bool // addresses that it had once and has not now
}

// A partner is a peer that this one has a job with.
type partner struct {
	conns   map[string]*conn // by ID
	met     bool             // there has been a connection
	apart   bool             // there is none, after there was one
	parted  bool             // one has gone, and what went beside it may wait: processes' own connections
	dialing bool
	due     time.Time // of the next dial
	pause   time.Duration
}

// A conn is a connection with a partner.
type conn struct {
	asked   time.Time // last; zero: never
	waiting bool      // for the answer
	arrived uint64    // at the last look
	lived   time.Time // when that was last seen to grow
	below   uint64    // for a circuit: value at the last look
	flowed  time.Time // when below was last seen to grow
}

// A hop is the way to a relay. All circuits through the relay share one queue. A probe that the relay has
// answered shows that everything sent before it has reached the relay.
type hop struct {
	asked   time.Time // when the relay was last probed
	waiting bool      // for the answer
	passed  time.Time // everything sent before this time has reached the relay
	at      time.Time // when that became known
}

// A sight is what there is of one partner now.
type sight struct {
	bears time.Duration // that it is silent, for the jobs with it
	conns []line
}

// A line is one connection.
type line struct {
	id      string
	local   netip.Addr // this machine's; unspecified: whichever it has (QUIC); not valid: through a relay
	arrived uint64     // grows when bytes arrive or are acknowledged; always 0: unknown
	relay   p2ppeer.ID // for a circuit
	below   uint64     // for a circuit: like arrived, on the way to the relay
}

// Orders are what is to be done.
type orders struct {
	ask  []string     // connections, by ID
	hops []p2ppeer.ID // relays to ask
	drop []string
	dial []p2ppeer.ID
	back []p2ppeer.ID // peers that are connected again
}

func newWatch() *watch {
	return &watch{
		peers: make(map[p2ppeer.ID]*partner), hops: make(map[p2ppeer.ID]*hop), gone: make(map[netip.Addr]bool),
	}
}

// look takes what there is now. own are this machine's addresses; none: they are not known.
func (w *watch) look(now time.Time, seen map[p2ppeer.ID]sight, own []netip.Addr) (out orders) {
	for id := range w.peers {
		if _, ok := seen[id]; !ok {
			delete(w.peers, id)
		}
	}
	w.meetRelays(seen)
	lost := w.own(own)
	for id, s := range seen {
		p := w.peers[id]
		if p == nil {
			p = &partner{conns: make(map[string]*conn)}
			w.peers[id] = p
		}
		left := p.tend(now, s, w.hops, func(local netip.Addr) bool { return w.gone[local] || mayBeFrom(local, lost) }, &out)
		p.meet(now, id, left, &out)
	}
	return out
}

// meetRelays records the relays of the current circuits.
func (w *watch) meetRelays(seen map[p2ppeer.ID]sight) {
	used := make(map[p2ppeer.ID]bool)
	for _, s := range seen {
		for _, l := range s.conns {
			used[l.relay] = true
			if l.relay != "" && w.hops[l.relay] == nil {
				w.hops[l.relay] = &hop{}
			}
		}
	}
	for id := range w.hops {
		if !used[id] {
			delete(w.hops, id)
		}
	}
}

// maxGone bounds the addresses that are remembered.
const maxGone = 1024

// own takes this machine's addresses; none: they are not known. It returns those that were lost
// since the last look. Only one that it is seen to lose is gone: connections may be from others
// that no interface lists.
func (w *watch) own(now []netip.Addr) (lost []netip.Addr) {
	if len(now) == 0 {
		return nil
	}
	if len(w.gone) > maxGone {
		clear(w.gone)
	}
	for _, a := range w.had {
		if !a.IsLoopback() && !slices.Contains(now, a) {
			w.gone[a] = true
			lost = append(lost, a)
		}
	}
	for _, a := range now {
		delete(w.gone, a)
	}
	w.had = now
	return lost
}

// mayBeFrom reports whether a connection from whichever address the machine has may be from one
// of those: they are of its family, IPv4 or IPv6.
func mayBeFrom(local netip.Addr, those []netip.Addr) bool {
	return slices.ContainsFunc(those, func(a netip.Addr) bool {
		return local.IsUnspecified() && a.Is4() == local.Is4()
	})
}

// tend asks and drops connections, and returns how many are left. gone reports whether one from
// an address cannot work any more.
func (p *partner) tend(now time.Time, s sight, hops map[p2ppeer.ID]*hop, gone func(netip.Addr) bool, out *orders) (left int) {
	newcomer, stayed := false, 0
	for _, l := range s.conns {
		if p.conns[l.id] == nil {
			newcomer = true
		} else {
			stayed++
		}
	}
	p.parted = p.parted || stayed < len(p.conns) // also by the other end, which may have moved
	asked := false
	conns := make(map[string]*conn, len(s.conns))
	for _, l := range s.conns {
		c := p.conns[l.id]
		if c == nil {
			c = &conn{asked: now, arrived: l.arrived, below: l.below}
		}
		c.see(l, now)
		h := hops[l.relay]
		switch {
		case gone(l.local), c.silent(now, h) >= patience(s.bears):
			p.parted = true
			out.drop = append(out.drop, l.id)
			continue // if it is still there the next time it is a new one
		case !asked && (c.due(now) || !c.waiting && newcomer && p.conns[l.id] != nil):
			c.asked, c.waiting, asked = now, true, true // the others later: it answers few questions at a time
			out.ask = append(out.ask, l.id)
		case c.lacks(h) && !h.waiting:
			h.asked, h.waiting = now, true
			out.hops = append(out.hops, l.relay)
		}
		conns[l.id] = c
	}
	p.conns = conns
	return len(conns)
}

// see records what has changed on a connection since the last look.
func (c *conn) see(l line, now time.Time) {
	if l.arrived != c.arrived {
		c.arrived, c.lived = l.arrived, now
	}
	if l.below != c.below {
		c.below, c.flowed = l.below, now
	}
}

// silent returns for how long nothing has arrived that should have. An answer waits behind all other traffic on
// its way, and so does a probe: on a circuit it waits behind all traffic through the same relay. Until the
// probe has reached the relay, the relay's signs of life count.
func (c *conn) silent(now time.Time, h *hop) time.Duration {
	if !c.waiting {
		return 0
	}
	since := later(c.asked, c.lived)
	switch {
	case c.lacks(h):
		since = later(since, c.flowed)
	case h != nil:
		since = later(since, h.at)
	}
	return now.Sub(since)
}

// lacks reports whether a probe on a circuit may not have reached the relay yet.
func (c *conn) lacks(h *hop) bool { return h != nil && c.waiting && !h.passed.After(c.asked) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// due reports whether it is time to ask. One that is full is asked again before it has
// answered: if it is full in this direction only, the other end hears nothing else.
func (c *conn) due(now time.Time) bool {
	return now.Sub(c.asked) >= askPeriod && (!c.waiting || c.lived.After(c.asked))
}

// patience is how long a connection may be silent that was asked.
func patience(bears time.Duration) time.Duration {
	return min(max(askAtLeast, bears/askPart), askAtMost)
}

// meet has a peer dialled to which there is no connection any more.
func (p *partner) meet(now time.Time, id p2ppeer.ID, left int, out *orders) {
	switch {
	case left > 0:
		if p.parted {
			out.back = append(out.back, id)
		}
		p.met, p.apart, p.parted, p.pause = true, false, false, dialFirst
	case p.met && !p.apart:
		p.apart, p.parted, p.due = true, true, now
		fallthrough
	case p.apart && !p.dialing && !now.Before(p.due):
		p.dialing = true
		out.dial = append(out.dial, id)
	}
}

// answered notes that a connection works, or that it could not be asked whether it does: it
// is asked again.
func (w *watch) answered(peer p2ppeer.ID, id string) {
	if p := w.peers[peer]; p != nil && p.conns[id] != nil {
		p.conns[id].waiting = false
	}
}

// heard records the end of a probe to a relay, and whether it has reached the relay.
func (w *watch) heard(now time.Time, relay p2ppeer.ID, there bool) {
	h := w.hops[relay]
	if h == nil {
		return
	}
	if h.waiting = false; there {
		h.passed, h.at = h.asked, now
	}
}

// dialled notes the end of a dial; if there is a connection now, look sees it.
func (w *watch) dialled(now time.Time, peer p2ppeer.ID) {
	if p := w.peers[peer]; p != nil {
		p.dialing, p.due = false, now.Add(p.pause)
		p.pause = min(2*p.pause, dialMost)
	}
}
