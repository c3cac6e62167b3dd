package connected

import (
	"net/netip"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// probePeriod is the interval between probes of a connection: every second check, even if a check is
	// late. If the other end's data fills the connection, that end receives only these probes. After a
	// probe, a connection may be silent for a fraction 1/silencePart of the silence that the job tolerates,
	// at least leastSilence and at most mostSilence. The remaining time is for reconnecting.
	probePeriod  = 3 * time.Second / 2
	leastSilence = 3 * time.Second
	mostSilence  = 10 * time.Second
	silencePart  = 4

	// The pause between dials of a peer grows from dialFirst to dialMost.
	dialFirst = 250 * time.Millisecond
	dialMost  = 2 * time.Second
)

// A watch decides which connections to probe, to drop and to restore. It is a pure core.
type watch struct {
	peers     map[p2ppeer.ID]*partner
	relays    map[p2ppeer.ID]*relayState // relays that partners are connected through
	addrs     []netip.Addr               // this machine's addresses when they were last known
	lostAddrs map[netip.Addr]bool        // addresses that this machine has lost and not regained
}

// A partner is another peer of a current job.
type partner struct {
	conns        map[string]*conn // by ID
	met          bool             // a connection has existed
	disconnected bool             // all connections are lost
	lostAny      bool             // a connection was lost, so processes' own connections may be stalled
	dialing      bool
	due          time.Time // time of the next dial
	pause        time.Duration
}

// A conn is a connection to a partner.
type conn struct {
	probed      time.Time // last probe; zero if never probed
	waiting     bool      // the probe has no answer yet
	arrived     uint64    // value at the last check
	lastArrival time.Time // last time that arrived grew
	below       uint64    // for a circuit: value at the last check
	lastBelow   time.Time // last time that below grew
}

// A relayState describes the connections to a relay. All circuits through the relay share one queue. If the
// relay has answered a probe, everything sent before that probe has reached the relay.
type relayState struct {
	probed  time.Time // last probe of the relay
	waiting bool      // the probe has no answer yet
	passed  time.Time // everything sent before this time has reached the relay
	at      time.Time // time when passed became known
}

// A partnerState is an observation of one partner at a check.
type partnerState struct {
	tolerates time.Duration // silence that the jobs with the partner tolerate
	conns     []connState
}

// A connState is an observation of one connection at a check.
type connState struct {
	id      string
	local   netip.Addr // this machine's address; unspecified for QUIC (any address), invalid for a circuit
	arrived uint64     // grows when bytes arrive or are acknowledged; always 0 if they are not counted
	relay   p2ppeer.ID // for a circuit: its relay
	below   uint64     // for a circuit: like arrived, on the connections to the relay
}

// orders are the actions that a watch asks for.
type orders struct {
	probe  []string     // connections to probe, by ID
	relays []p2ppeer.ID // relays to probe
	drop   []string
	dial   []p2ppeer.ID
	back   []p2ppeer.ID // peers that are connected again
}

func newWatch() *watch {
	return &watch{
		peers: make(map[p2ppeer.ID]*partner), relays: make(map[p2ppeer.ID]*relayState), lostAddrs: make(map[netip.Addr]bool),
	}
}

// decide evaluates the present state. own lists this machine's addresses, and is empty if they are not
// known.
func (w *watch) decide(now time.Time, seen map[p2ppeer.ID]partnerState, own []netip.Addr) (out orders) {
	for id := range w.peers {
		if _, ok := seen[id]; !ok {
			delete(w.peers, id)
		}
	}
	w.noteRelays(seen)
	lost := w.own(own)
	for id, s := range seen {
		p := w.peers[id]
		if p == nil {
			p = &partner{conns: make(map[string]*conn)}
			w.peers[id] = p
		}
		left := p.check(now, s, w.relays, func(local netip.Addr) bool { return w.lostAddrs[local] || mayBeFrom(local, lost) }, &out)
		p.restore(now, id, left, &out)
	}
	return out
}

// noteRelays records the relays of the current circuits.
func (w *watch) noteRelays(seen map[p2ppeer.ID]partnerState) {
	used := make(map[p2ppeer.ID]bool)
	for _, s := range seen {
		for _, l := range s.conns {
			used[l.relay] = true
			if l.relay != "" && w.relays[l.relay] == nil {
				w.relays[l.relay] = &relayState{}
			}
		}
	}
	for id := range w.relays {
		if !used[id] {
			delete(w.relays, id)
		}
	}
}

// maxGone bounds the number of remembered addresses.
const maxGone = 1024

// own records this machine's addresses, and returns the addresses lost since the last check. An empty list
// means that the addresses are not known. Only an address that was seen before counts as lost, since a
// connection may use an address that no interface lists.
func (w *watch) own(now []netip.Addr) (lost []netip.Addr) {
	if len(now) == 0 {
		return nil
	}
	if len(w.lostAddrs) > maxGone {
		clear(w.lostAddrs)
	}
	for _, a := range w.addrs {
		if !a.IsLoopback() && !slices.Contains(now, a) {
			w.lostAddrs[a] = true
			lost = append(lost, a)
		}
	}
	for _, a := range now {
		delete(w.lostAddrs, a)
	}
	w.addrs = now
	return lost
}

// mayBeFrom reports whether a connection may use one of the given addresses, because its local address is
// unspecified and of the same family (IPv4 or IPv6).
func mayBeFrom(local netip.Addr, those []netip.Addr) bool {
	return slices.ContainsFunc(those, func(a netip.Addr) bool {
		return local.IsUnspecified() && a.Is4() == local.Is4()
	})
}

// check probes and drops connections, and returns the number of remaining ones. gone reports whether a
// connection from an address cannot work any more.
func (p *partner) check(now time.Time, s partnerState, relays map[p2ppeer.ID]*relayState, gone func(netip.Addr) bool, out *orders) (left int) {
	newcomer, stayed := false, 0
	for _, l := range s.conns {
		if p.conns[l.id] == nil {
			newcomer = true
		} else {
			stayed++
		}
	}
	p.lostAny = p.lostAny || stayed < len(p.conns) // even if the other end closed it, since that end may have a new address
	probed := false
	conns := make(map[string]*conn, len(s.conns))
	for _, l := range s.conns {
		c := p.conns[l.id]
		if c == nil {
			c = &conn{probed: now, arrived: l.arrived, below: l.below}
		}
		c.update(l, now)
		h := relays[l.relay]
		switch {
		case gone(l.local), c.silent(now, h) >= maxSilence(s.tolerates):
			p.lostAny = true
			out.drop = append(out.drop, l.id)
			continue
		case !probed && (c.due(now) || !c.waiting && newcomer && p.conns[l.id] != nil):
			c.probed, c.waiting, probed = now, true, true // one probe at a time, since libp2p answers few per peer
			out.probe = append(out.probe, l.id)
		case c.awaitsRelay(h) && !h.waiting:
			h.probed, h.waiting = now, true
			out.relays = append(out.relays, l.relay)
		}
		conns[l.id] = c
	}
	p.conns = conns
	return len(conns)
}

// update records the changes of a connection since the last check.
func (c *conn) update(l connState, now time.Time) {
	if l.arrived != c.arrived {
		c.arrived, c.lastArrival = l.arrived, now
	}
	if l.below != c.below {
		c.below, c.lastBelow = l.below, now
	}
}

// silent returns the time for which no bytes have arrived although an answer is due. An answer waits behind
// all other traffic of its connection, and so does a probe. On a circuit the probe waits behind all traffic
// through the same relay. Until the probe has reached the relay, the relay's signs of life count.
func (c *conn) silent(now time.Time, h *relayState) time.Duration {
	if !c.waiting {
		return 0
	}
	since := later(c.probed, c.lastArrival)
	switch {
	case c.awaitsRelay(h):
		since = later(since, c.lastBelow)
	case h != nil:
		since = later(since, h.at)
	}
	return now.Sub(since)
}

// awaitsRelay reports whether a probe on a circuit may not have reached the relay yet.
func (c *conn) awaitsRelay(h *relayState) bool {
	return h != nil && c.waiting && !h.passed.After(c.probed)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// due reports whether it is time for a probe. A busy connection is probed again before it has answered. If
// only the other end sends data, that end receives only these probes.
func (c *conn) due(now time.Time) bool {
	return now.Sub(c.probed) >= probePeriod && (!c.waiting || c.lastArrival.After(c.probed))
}

// maxSilence returns the time for which a probed connection may be silent.
func maxSilence(tolerates time.Duration) time.Duration {
	return min(max(leastSilence, tolerates/silencePart), mostSilence)
}

// restore dials a peer if its last connection was lost, and reports a peer that is connected again.
func (p *partner) restore(now time.Time, id p2ppeer.ID, left int, out *orders) {
	switch {
	case left > 0:
		if p.lostAny {
			out.back = append(out.back, id)
		}
		p.met, p.disconnected, p.lostAny, p.pause = true, false, false, dialFirst
	case p.met && !p.disconnected:
		p.disconnected, p.lostAny, p.due = true, true, now
		fallthrough
	case p.disconnected && !p.dialing && !now.Before(p.due):
		p.dialing = true
		out.dial = append(out.dial, id)
	}
}

// restoring reports whether a peer is dialled because its last connection was lost.
func (w *watch) restoring(id p2ppeer.ID) bool {
	p := w.peers[id]
	return p != nil && p.disconnected
}

// answered records that a connection has answered, or that the probe could not be sent. The connection is
// probed again.
func (w *watch) answered(peer p2ppeer.ID, id string) {
	if p := w.peers[peer]; p != nil && p.conns[id] != nil {
		p.conns[id].waiting = false
	}
}

// heard records the end of a probe to a relay, and whether the probe has reached the relay.
func (w *watch) heard(now time.Time, relay p2ppeer.ID, there bool) {
	h := w.relays[relay]
	if h == nil {
		return
	}
	if h.waiting = false; there {
		h.passed, h.at = h.probed, now
	}
}

// dialled records the end of a dial. The next check finds the new connection, if there is one.
func (w *watch) dialled(now time.Time, peer p2ppeer.ID) {
	if p := w.peers[peer]; p != nil {
		p.dialing, p.due = false, now.Add(p.pause)
		p.pause = min(2*p.pause, dialMost)
	}
}
