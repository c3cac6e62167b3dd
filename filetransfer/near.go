package filetransfer

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// This file contains the decisions of a plan that depend on sites. Peers at one site share a slow link to the
// rest of the network, and reach each other over a fast one. So each unit should enter a site once. One peer
// of the site, the unit's owner, may request the unit from members at other sites, and the others get it from
// their neighbours. The origin needs no owners, because it gives each unit to one peer only.
//
// Neighbours compute the owner from their peer IDs (rendezvous hashing), so they agree without a message.
// Where they see different neighbours, a unit enters more than once. No two peers wait for each other,
// because a peer waits only for an owner of greater weight.

const (
	// waitShare bounds the time that a fetch waits for one neighbour: 1/waitShare of its running time.
	waitShare = 4
	// unitTime is the additional wait allowed for each unit that the neighbour has sent: 4 MiB/s.
	unitTime = 60 * time.Millisecond
)

// A neighbour is a member at this peer's site.
type neighbour struct {
	key    uint64
	waited time.Duration // time in which this peer could only wait for the neighbour
	units  int           // number of units that the neighbour has sent
}

// siteKey returns the hash of a peer ID that, with a unit's number, determines which units the peer owns.
func siteKey(p p2ppeer.ID) uint64 {
	sum := sha256.Sum256([]byte(p))
	return binary.BigEndian.Uint64(sum[:])
}

// weight mixes a peer's key and a unit (the finalizer of SplitMix64).
func weight(key uint64, unit int) uint64 {
	x := key + uint64(unit+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// place sets this peer's key and the keys of the sources at its site. It is called before any source
// joins. Without it, every source counts as being at another site.
func (p *plan) place(key uint64, near map[int]uint64) {
	p.key = key
	for id, k := range near {
		p.near[id] = &neighbour{key: k}
	}
}

// owner returns the source that should request the unit from other sites, or itself if this peer should. It
// considers only neighbours that are reachable and take part.
func (p *plan) owner(unit int) int {
	best, most := itself, weight(p.key, unit)
	for id, n := range p.near {
		if s := p.sources[id]; s == nil || s.has == nil || s.silent {
			continue
		}
		if w := weight(n.key, unit); w > most {
			best, most = id, w
		}
	}
	return best
}

// itself denotes this peer among the sources.
const itself = -1

// enters reports whether this peer may request the unit from another site if a member has it: no neighbour
// has the unit or should request it.
func (p *plan) enters(unit int) bool {
	return len(p.near) == 0 || p.local[unit] == 0 && p.owner(unit) == itself
}

// chargeNeighbours adds the time since the last tick to the waiting time of the neighbours for which this peer
// could only wait. This peer can only wait if it expects nothing from other sites, and available units must
// come through a neighbour. A neighbour that has kept this peer waiting for too long is treated as a member at
// another site.
func (p *plan) chargeNeighbours(now time.Duration) {
	since := now - p.ticked
	p.ticked = now
	if len(p.near) == 0 || p.crossing() {
		return
	}
	for id := range p.blocking() {
		n := p.near[id]
		if n.waited += since; n.waited > originTimeout+(now-p.begun)/waitShare+time.Duration(n.units)*unitTime {
			p.treatAsRemote(id)
		}
	}
}

// crossing reports whether a request to another site is unanswered and its source is not silent.
func (p *plan) crossing() bool {
	for id, s := range p.sources {
		if p.near[id] == nil && !s.silent && len(s.asked) > 0 {
			return true
		}
	}
	return false
}

// blocking returns the neighbours that have, or own, a missing unit that a member has and that this peer
// must not request from another site.
func (p *plan) blocking() map[int]bool {
	ids := map[int]bool{}
	for u := p.first; u < len(p.held); u++ {
		if p.done.has(u) || p.held[u] == 0 {
			continue
		}
		if p.local[u] == 0 {
			if id := p.owner(u); id != itself {
				ids[id] = true
			}
			continue
		}
		for id := range p.near {
			if s := p.sources[id]; s != nil && !s.silent && s.has != nil && s.has.has(u) {
				ids[id] = true
			}
		}
	}
	return ids
}

// treatAsRemote treats a neighbour as a member at another site from now on.
func (p *plan) treatAsRemote(id int) {
	if s := p.sources[id]; s != nil && !s.silent && s.has != nil {
		for u := range p.local {
			if s.has.has(u) {
				p.local[u]--
			}
		}
	}
	delete(p.near, id)
}
