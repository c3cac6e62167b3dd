package relay

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Bounds on the pause before the next request, which doubles after each refusal. A reservation is not renewed
// earlier than after retryMin.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// wanted is the number of relays at which a peer reserves, if it knows as many. When one of them is lost, the
// others still work.
const wanted = 3

// maxFound bounds the number of known relays that are not configured.
const maxFound = 64

// A plan decides at which relays this peer reserves, and when. It also determines the addresses of the peer
// through these relays. It is a pure core. It uses all configured relays, and adds relays that were found, in the
// order in which they were found, until as many are in use as are wanted.
type plan struct {
	relays map[p2ppeer.ID]*reserved
	found  []p2ppeer.ID // relays that are not configured, in order
	idle   bool         // others reach this peer without relays
}

// reserved is the state of one relay.
type reserved struct {
	addrs []ma.Multiaddr // at which this peer reaches the relay
	until time.Time      // end of the reservation; zero if there is none
	via   []ma.Multiaddr // addresses that the relay reports for itself
	due   time.Time      // time of the next request
	pause time.Duration  // pause after the next refusal
	busy  bool           // a request is pending
}

func newPlan(relays []p2ppeer.AddrInfo) *plan {
	p := &plan{relays: make(map[p2ppeer.ID]*reserved)}
	for _, r := range relays {
		p.relays[r.ID] = &reserved{addrs: r.Addrs, pause: retryMin}
	}
	return p
}

// find records a connected relay and its present addresses.
func (p *plan) find(r p2ppeer.AddrInfo) {
	switch known := p.relays[r.ID]; {
	case known == nil && len(p.found) < maxFound:
		p.relays[r.ID] = &reserved{addrs: r.Addrs, pause: retryMin}
		p.found = append(p.found, r.ID)
	case known != nil && slices.Contains(p.found, r.ID):
		known.addrs = r.Addrs
	}
}

// forget removes a found relay, unless a request is pending or this peer has a reservation there.
func (p *plan) forget(id p2ppeer.ID) {
	if i, r := slices.Index(p.found, id), p.relays[id]; i >= 0 && !r.engaged() {
		p.found = slices.Delete(p.found, i, i+1)
		delete(p.relays, id)
	}
}

// engaged reports whether a relay counts as one of those wanted.
func (r *reserved) engaged() bool { return r.busy || !r.until.IsZero() }

// due returns the relays at which to request a reservation now, and marks them as busy.
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

// next returns the time of the next request, unless another event changes it.
func (p *plan) next() (when time.Time, ok bool) {
	id, ok := p.nextRelay()
	if !ok {
		return time.Time{}, false
	}
	return p.relays[id].due, true
}

// nextRelay returns the relay with the earliest request, if there is any.
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

// granted records a reservation, which is renewed after half of its time.
func (p *plan) granted(id p2ppeer.ID, until time.Time, via []ma.Multiaddr, now time.Time) {
	r := p.relays[id]
	r.busy, r.until, r.via, r.pause = false, until, via, retryMin
	r.due = now.Add(max(until.Sub(now)/2, retryMin))
}

// refused records a refusal. An earlier reservation may still be valid. A found relay that still refuses after
// the longest pause is removed, until it is found again.
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

// lost records that the connection to a relay was lost. The reservation ends with it.
func (p *plan) lost(id p2ppeer.ID, now time.Time) {
	if r := p.relays[id]; r != nil {
		r.until, r.due, r.pause = time.Time{}, now, retryMin
	}
}

// met records that a relay has connected. A missing reservation is requested at once.
func (p *plan) met(id p2ppeer.ID, now time.Time) {
	if r := p.relays[id]; r != nil && r.until.IsZero() {
		r.due = now
	}
}

// reachable records whether others reach this peer without relays.
func (p *plan) reachable(yes bool) { p.idle = yes }

// maxAddresses bounds the advertised addresses through one relay.
const maxAddresses = 8

// circuits returns the addresses of this peer through relays, sorted.
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

// circuitsOf returns the addresses of this peer through one relay. Those at which this peer reaches the relay come
// first, since they are known to work. circuitsOf omits loopback addresses unless the relay is on this machine.
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
