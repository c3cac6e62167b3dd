package punch

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// How soon is tried again: first after libp2p's own attempt is over as a rule, then
// doubling.
const (
	pauseMin = 5 * time.Second
	pauseMax = 10 * time.Minute
)

// maxTrying bounds the pairs that are being tried at a time.
const maxTrying = 4

// A plan says which peers that are reached through relays only are tried, and when. It is
// a pure core.
type plan struct {
	pairs  map[p2ppeer.ID]*pair
	trying int
}

// pair is where things stand with one peer.
type pair struct {
	due    time.Time
	pause  time.Duration // after the next failure
	trying bool
	gone   bool // while it is being tried: not wanted any more
}

func newPlan() *plan { return &plan{pairs: make(map[p2ppeer.ID]*pair)} }

// relayed notes that a peer is reached through relays only.
func (p *plan) relayed(id p2ppeer.ID, now time.Time) {
	if r := p.pairs[id]; r != nil {
		r.gone = false
		return
	}
	p.pairs[id] = &pair{due: now.Add(pauseMin), pause: 2 * pauseMin}
}

// settled notes that a peer is reached directly, or not at all any more.
func (p *plan) settled(id p2ppeer.ID) {
	if r := p.pairs[id]; r != nil && r.trying {
		r.gone = true
		return
	}
	delete(p.pairs, id)
}

// moved notes that this peer's addresses have changed: what failed may succeed.
func (p *plan) moved(now time.Time) {
	for _, r := range p.pairs {
		r.due, r.pause = now.Add(pauseMin), 2*pauseMin
	}
}

// due returns the peers to try now, which are then being tried.
func (p *plan) due(now time.Time) []p2ppeer.ID {
	var out []p2ppeer.ID
	for {
		id, ok := p.first()
		if !ok || now.Before(p.pairs[id].due) {
			return out
		}
		p.pairs[id].trying = true
		p.trying++
		out = append(out, id)
	}
}

// next returns when to look again, if nothing happens before.
func (p *plan) next() (when time.Time, ok bool) {
	id, ok := p.first()
	if !ok {
		return time.Time{}, false
	}
	return p.pairs[id].due, true
}

// first returns the peer that is to be tried before all others, if any is.
func (p *plan) first() (first p2ppeer.ID, ok bool) {
	if p.trying == maxTrying {
		return "", false
	}
	for id, r := range p.pairs {
		if !r.trying && (!ok || r.due.Before(p.pairs[first].due)) {
			first, ok = id, true
		}
	}
	return first, ok
}

// tried notes that a try is over. If there really was none (see try.really), the next one comes soon.
// Whether it has succeeded is noted by settled.
func (p *plan) tried(id p2ppeer.ID, really bool, now time.Time) {
	r := p.pairs[id]
	p.trying--
	r.trying, r.due = false, now.Add(pauseMin)
	if really {
		r.due, r.pause = now.Add(r.pause), min(2*r.pause, pauseMax)
	}
	if r.gone {
		delete(p.pairs, id)
	}
}
