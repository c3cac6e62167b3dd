package punch

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Pauses between attempts. The first one usually outlasts libp2p's own attempt; then they double.
const (
	pauseMin = 5 * time.Second
	pauseMax = 10 * time.Minute
)

// maxTrying bounds the number of peers that are tried at a time.
const maxTrying = 4

// A plan decides which peers with only relayed connections are tried, and when. It is a pure core.
type plan struct {
	pairs  map[p2ppeer.ID]*pair
	trying int
}

// pair is the state of one peer.
type pair struct {
	due    time.Time
	pause  time.Duration // after the next failure
	trying bool
	gone   bool // no longer wanted; removed at the end of the present attempt
}

func newPlan() *plan { return &plan{pairs: make(map[p2ppeer.ID]*pair)} }

// relayed records that a peer is connected only through relays.
func (p *plan) relayed(id p2ppeer.ID, now time.Time) {
	if r := p.pairs[id]; r != nil {
		r.gone = false
		return
	}
	p.pairs[id] = &pair{due: now.Add(pauseMin), pause: 2 * pauseMin}
}

// settled records that a peer is connected directly, or is disconnected.
func (p *plan) settled(id p2ppeer.ID) {
	if r := p.pairs[id]; r != nil && r.trying {
		r.gone = true
		return
	}
	delete(p.pairs, id)
}

// moved records that this peer's addresses have changed, so earlier failures are no guide.
func (p *plan) moved(now time.Time) {
	for _, r := range p.pairs {
		r.due, r.pause = now.Add(pauseMin), 2*pauseMin
	}
}

// due returns the peers to try now, and marks them as being tried.
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

// next returns the time of the next attempt, if nothing happens before.
func (p *plan) next() (when time.Time, ok bool) {
	id, ok := p.first()
	if !ok {
		return time.Time{}, false
	}
	return p.pairs[id].due, true
}

// first returns the peer with the earliest attempt, if there is any.
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

// tried records the end of an attempt. If it was no real attempt (see try.really), the next one follows
// soon. A call of settled reports its success.
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
