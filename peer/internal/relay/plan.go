package relay

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// How soon is asked again: after a refusal, doubling, and before a reservation ends.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// wanted is at how many relays a peer reserves, if there are so many: when one is lost
// the others are there already.
const wanted = 3

// maxFound bounds the relays that are remembered besides those that were given.
const maxFound = 64

// A plan says at which relays this peer is to reserve, when, and by which addresses
// it is reached then. It is a pure core. The relays that it was given are all asked;
// of those found later as many as are wanted, in the order in which they were found.
type plan struct {
	relays map[p2ppeer.ID]*reserved
	found  []p2ppeer.ID // those of relays that were not given
	idle   bool         // others reach this peer without
}

// reserved is where things stand with one relay.
type reserved struct {
	addrs []ma.Multiaddr // of the relay, as this peer was told
	until time.Time      // of the reservation; zero without one
	via   []ma.Multiaddr // the addresses that the relay says it has
	due   time.Time      // when to ask next
	pause time.Duration  // after the next refusal
	busy  bool           // being asked
}

func newPlan(relays []p2ppeer.AddrInfo) *plan {
	p := &plan{relays: make(map[p2ppeer.ID]*reserved)}
	for _, r := range relays {
		p.relays[r.ID] = &reserved{addrs: r.Addrs, pause: retryMin}
	}
	return p
}

// find notes a relay that is connected, or where it is now.
func (p *plan) find(r p2ppeer.AddrInfo) {
	switch known := p.relays[r.ID]; {
	case known == nil && len(p.found) < maxFound:
		p.relays[r.ID] = &reserved{addrs: r.Addrs, pause: retryMin}
		p.found = append(p.found, r.ID)
	case known != nil && slices.Contains(p.found, r.ID):
		known.addrs = r.Addrs
	}
}

// forget drops a relay that was found, unless it is being asked or has this peer reached.
func (p *plan) forget(id p2ppeer.ID) {
	if i, r := slices.Index(p.found, id), p.relays[id]; i >= 0 && !r.engaged() {
		p.found = slices.Delete(p.found, i, i+1)
		delete(p.relays, id)
	}
}

// engaged reports whether a relay counts among those wanted.
func (r *reserved) engaged() bool { return r.busy || !r.until.IsZero() }

// due returns the relays to ask now, which are then being asked.
func (p *plan) due(now time.Time) []p2ppeer.AddrInfo {
	var out []p2ppeer.AddrInfo
	for {
		id, ok := p.nextRelay()
		if !ok || now.Before(p.relays[id].due) {
			return out
		}
		r := p.relays[id]
		r.busy = true
		out = append(out, p2ppeer.AddrInfo{ID: id, Addrs: r.addrs})
	}
}

// next returns when to look again, if nothing happens before.
func (p *plan) next() (when time.Time, ok bool) {
	id, ok := p.nextRelay()
	if !ok {
		return time.Time{}, false
	}
	return p.relays[id].due, true
}

// nextRelay returns the relay that is to be asked before all others, if any is.
func (p *plan) nextRelay() (next p2ppeer.ID, ok bool) {
	if p.idle {
		return "", false
	}
	engaged := 0
	for _, r := range p.relays {
		if r.engaged() {
			engaged++
		}
	}
	sooner := func(id p2ppeer.ID) bool { return !ok || p.relays[id].due.Before(p.relays[next].due) }
	for id, r := range p.relays {
		if given := !slices.Contains(p.found, id); !r.busy && (given || r.engaged()) && sooner(id) {
			next, ok = id, true
		}
	}
	for _, id := range p.found {
		if r := p.relays[id]; engaged < wanted && !r.engaged() && sooner(id) {
			next, ok = id, true
		}
	}
	return next, ok
}

// granted notes a reservation, which is renewed when half of its time is over.
func (p *plan) granted(id p2ppeer.ID, until time.Time, via []ma.Multiaddr, now time.Time) {
	r := p.relays[id]
	r.busy, r.until, r.via, r.pause = false, until, via, retryMin
	r.due = now.Add(max(until.Sub(now)/2, retryMin))
}

// refused notes that a relay gave nothing. An earlier reservation may be left. One that
// was found and has refused for long is forgotten: it is found again when it is met again.
func (p *plan) refused(id p2ppeer.ID, now time.Time) {
	r := p.relays[id]
	r.busy, r.due = false, now.Add(r.pause)
	if now.After(r.until) {
		r.until = time.Time{}
	}
	if r.pause == retryMax {
		p.forget(id)
	}
	r.pause = min(2*r.pause, retryMax)
}

// lost notes that the connection to a relay is gone, and the reservation with it.
func (p *plan) lost(id p2ppeer.ID, now time.Time) {
	if r := p.relays[id]; r != nil {
		r.until, r.due, r.pause = time.Time{}, now, retryMin
	}
}

// met notes that a relay is connected: if there is something to ask, now is the time.
func (p *plan) met(id p2ppeer.ID, now time.Time) {
	if r := p.relays[id]; r != nil && r.until.IsZero() {
		r.due = now
	}
}

// reachable notes whether others reach this peer without relays.
func (p *plan) reachable(yes bool) { p.idle = yes }

// maxAddresses bounds those of one relay that are advertised.
const maxAddresses = 8

// circuits are the addresses by which this peer is reached through relays, sorted.
func (p *plan) circuits() []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, id := range slices.Sorted(maps.Keys(p.relays)) {
		if r := p.relays[id]; !p.idle && !r.until.IsZero() {
			out = append(out, circuitsOf(id, r)...)
		}
	}
	slices.SortFunc(out, ma.Multiaddr.Compare)
	return out
}

// circuitsOf puts the addresses first with which this peer has reached the relay:
// they are not only good in the relay's own opinion. Loopback helps only those who
// are on it.
func circuitsOf(id p2ppeer.ID, r *reserved) []ma.Multiaddr {
	suffix := ma.StringCast("/p2p/" + id.String() + "/p2p-circuit")
	here := slices.ContainsFunc(r.addrs, manet.IsIPLoopback)
	var out []ma.Multiaddr
	for _, a := range slices.Concat(r.addrs, r.via) {
		a, _ = p2ppeer.SplitAddr(a)
		if a == nil || !here && manet.IsIPLoopback(a) {
			continue
		}
		a = a.Encapsulate(suffix)
		if len(out) < maxAddresses && !slices.ContainsFunc(out, a.Equal) {
			out = append(out, a)
		}
	}
	return out
}
