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

// A plan says at which relays this peer is to reserve, when, and by which addresses
// it is reached then. It is a pure core.
type plan struct {
	relays map[p2ppeer.ID]*reserved
	idle   bool // others reach this peer without
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

// due returns the relays to ask now, which are then being asked.
func (p *plan) due(now time.Time) []p2ppeer.AddrInfo {
	var out []p2ppeer.AddrInfo
	for id, r := range p.relays {
		if !p.idle && !r.busy && !now.Before(r.due) {
			r.busy = true
			out = append(out, p2ppeer.AddrInfo{ID: id, Addrs: r.addrs})
		}
	}
	return out
}

// next returns when to look again, if nothing happens before.
func (p *plan) next() (when time.Time, ok bool) {
	for _, r := range p.relays {
		if !p.idle && !r.busy && (!ok || r.due.Before(when)) {
			when, ok = r.due, true
		}
	}
	return when, ok
}

// granted notes a reservation, which is renewed when half of its time is over.
func (p *plan) granted(id p2ppeer.ID, until time.Time, via []ma.Multiaddr, now time.Time) {
	r := p.relays[id]
	r.busy, r.until, r.via, r.pause = false, until, via, retryMin
	r.due = now.Add(max(until.Sub(now)/2, retryMin))
}

// refused notes that a relay gave nothing. An earlier reservation may be left.
func (p *plan) refused(id p2ppeer.ID, now time.Time) {
	r := p.relays[id]
	r.busy, r.due = false, now.Add(r.pause)
	r.pause = min(2*r.pause, retryMax)
	if now.After(r.until) {
		r.until = time.Time{}
	}
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
