package filetransfer

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// mutest is how long a link may carry nothing before what is under way on it
	// is given to others.
	mutest = 15 * time.Second
	// minLease and maxLease bound how long a unit that has arrived at one peer is
	// left to that peer to pass on: twice as long as it took to get there. A peer on
	// a busy machine takes a while to tell its fellows.
	minLease = 2 * time.Second
	maxLease = 10 * time.Second
	// unconfirmed is how long a unit that was sent in full is left to a peer that
	// does not say that it has arrived.
	unconfirmed = 60 * time.Second
	// maxBooked is how many units are booked for a peer that have not arrived.
	maxBooked = 16
)

// A ledger is an origin's book of the units of one list: to whom each was given,
// so that others get it from there. It is a pure core. What a peer says counts for
// a few units at a time, over however many links, and no unit is left to the same peer
// twice in a row.
//
//	free --grant--> under way --got--> arrived --lease over--> free
//	  ^                 |
//	  +-- gone, mute ---+
//	  +-- unconfirmed --+
type ledger struct {
	entries map[int]entry
	moved   map[holder]time.Duration        // when its link last carried something
	booked  map[p2ppeer.ID]map[int]struct{} // units of the peer's entries that have not arrived
}

// A holder is a peer to which units are given, over one of its links.
type holder struct {
	peer p2ppeer.ID
	link uint64 // its number
}

type entry struct {
	holder
	granted time.Duration
	until   time.Duration // it is left to the link; 0: until the link is mute
	arrived bool
}

func newLedger() *ledger {
	return &ledger{entries: map[int]entry{}, moved: map[holder]time.Duration{}, booked: map[p2ppeer.ID]map[int]struct{}{}}
}

// grant reports whether the unit may be sent to the peer as fresh, and books it.
func (l *ledger) grant(unit int, to holder, now time.Duration) bool {
	if e, ok := l.entries[unit]; ok && e.peer != to.peer && l.holds(e, now) {
		return false
	}
	l.book(unit, to, now)
	return true
}

// book takes note that the unit is sent to the peer, unless it is left to another
// one, or was to this one before, or the peer has enough.
func (l *ledger) book(unit int, to holder, now time.Duration) {
	e, ok := l.entries[unit]
	if ok && (e.peer == to.peer || l.holds(e, now)) || l.underWay(to.peer, now) >= maxBooked {
		return
	}
	delete(l.booked[e.peer], unit)
	l.entries[unit] = entry{holder: to, granted: now}
	if l.booked[to.peer] == nil {
		l.booked[to.peer] = map[int]struct{}{}
	}
	l.booked[to.peer][unit] = struct{}{}
	l.moved[to] = now
}

// underWay returns how many units are booked for the peer that have not arrived.
func (l *ledger) underWay(to p2ppeer.ID, now time.Duration) (n int) {
	for unit := range l.booked[to] {
		if l.holds(l.entries[unit], now) {
			n++
		}
	}
	return n
}

func (l *ledger) holds(e entry, now time.Duration) bool {
	if e.until > 0 && now >= e.until {
		return false
	}
	if e.arrived {
		return true
	}
	moved, ok := l.moved[e.holder]
	return ok && now-moved < mutest
}

// sent takes note that the link has carried something.
func (l *ledger) sent(to holder, now time.Duration) { l.moved[to] = now }

// delivered takes note that all of a unit was written to the link.
func (l *ledger) delivered(unit int, to holder, now time.Duration) {
	e, ok := l.entries[unit]
	if ok && e.holder == to && e.until == 0 {
		e.until = now + unconfirmed
		l.entries[unit] = e
	}
}

// got takes note that a unit has arrived over the link.
func (l *ledger) got(unit int, at holder, now time.Duration) {
	e, ok := l.entries[unit]
	if !ok || e.holder != at || e.arrived {
		return
	}
	e.arrived = true
	delete(l.booked[at.peer], unit)
	e.until = now + min(max(2*(now-e.granted), minLease), maxLease)
	l.entries[unit] = e
}

// gone takes note that the link has ended: what was under way on it is free.
func (l *ledger) gone(h holder) { delete(l.moved, h) }

// taken returns the units, of so many, that are not free.
func (l *ledger) taken(units int, now time.Duration) bitset {
	b := newBitset(units)
	for u, e := range l.entries {
		if u < units && l.holds(e, now) {
			b.add(u)
		}
	}
	return b
}
