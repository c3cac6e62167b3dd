package filetransfer

import "time"

const (
	// mutest is how long a link may carry nothing before what is under way on it
	// is given to others.
	mutest = 15 * time.Second
	// minLease and maxLease bound how long a unit that has arrived at one peer is
	// left to that peer to pass on: twice as long as it took to get there.
	minLease = 200 * time.Millisecond
	maxLease = 10 * time.Second
)

// A ledger is an origin's book of the units of one list: to whom each was given
// as fresh, so that others get it from there. It is a pure core.
//
//	free --grant--> under way --got--> arrived --lease over--> free
//	  ^                 |
//	  +-- gone, mute ---+
type ledger struct {
	entries map[int]entry
	moved   map[uint64]time.Duration // by link: when it last carried something
}

type entry struct {
	link    uint64
	granted time.Duration
	until   time.Duration // of the lease, once arrived
	arrived bool
}

func newLedger() *ledger {
	return &ledger{entries: map[int]entry{}, moved: map[uint64]time.Duration{}}
}

// grant reports whether the unit may be sent over the link, and books it.
func (l *ledger) grant(unit int, link uint64, now time.Duration) bool {
	if e, ok := l.entries[unit]; ok && e.link != link && l.holds(e, now) {
		return false
	}
	l.entries[unit] = entry{link: link, granted: now}
	l.moved[link] = now
	return true
}

func (l *ledger) holds(e entry, now time.Duration) bool {
	if e.arrived {
		return now < e.until
	}
	moved, ok := l.moved[e.link]
	return ok && now-moved < mutest
}

// sent takes note that the link has carried something.
func (l *ledger) sent(link uint64, now time.Duration) { l.moved[link] = now }

// got takes note that a unit has arrived over the link.
func (l *ledger) got(unit int, link uint64, now time.Duration) {
	e, ok := l.entries[unit]
	if !ok || e.link != link || e.arrived {
		return
	}
	e.arrived = true
	e.until = now + min(max(2*(now-e.granted), minLease), maxLease)
	l.entries[unit] = e
}

// gone takes note that the link has ended: what was under way on it is free.
func (l *ledger) gone(link uint64) { delete(l.moved, link) }

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
