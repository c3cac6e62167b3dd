package filetransfer

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// linkTimeout is how long a link may carry nothing before its pending units are given to other peers.
	linkTimeout = 15 * time.Second
	// minLease and maxLease bound how long a unit that has arrived at one peer is left to that peer to
	// pass on: twice as long as the transfer took. A peer on a busy machine takes a while to inform the
	// other members.
	minLease = 2 * time.Second
	maxLease = 10 * time.Second
	// confirmTimeout is how long a completely sent unit is left to a peer that does not confirm its arrival.
	confirmTimeout = 60 * time.Second
	// maxBooked bounds the units that are booked for a peer and have not arrived.
	maxBooked = 16
)

// A ledger is an origin's record of the peer to which each unit of a list was sent, so that other peers
// request the unit there. It is a pure core. To limit the effect of a lying peer, a peer can reserve only
// maxBooked units at a time over all its links. It cannot reserve the same unit twice in a row.
//
//	free --grant--> booked --got--> arrived --lease over--> free
//	  ^                |
//	  +- gone, silent -+
//	  +- unconfirmed --+
type ledger struct {
	entries map[int]entry
	moved   map[holder]time.Duration        // time when a link last carried data
	booked  map[p2ppeer.ID]map[int]struct{} // units booked for the peer that have not arrived
}

// A holder is a peer to which units are sent, on one of its links.
type holder struct {
	peer p2ppeer.ID
	link uint64 // number of the link
}

type entry struct {
	holder
	granted time.Duration
	until   time.Duration // end of the reservation; 0 means until the link carries no data for linkTimeout
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

// book records that the unit is sent to the peer. It does nothing if another peer holds the unit, if this
// peer was its last holder, or if this peer has maxBooked units already.
func (l *ledger) book(unit int, to holder, now time.Duration) {
	e, ok := l.entries[unit]
	if ok && (e.peer == to.peer || l.holds(e, now)) || l.inFlight(to.peer, now) >= maxBooked {
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

// inFlight returns how many units are booked for the peer and have not arrived.
func (l *ledger) inFlight(to p2ppeer.ID, now time.Duration) (n int) {
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
	return ok && now-moved < linkTimeout
}

// sent records that the link has carried data.
func (l *ledger) sent(to holder, now time.Duration) { l.moved[to] = now }

// delivered records that a unit was completely written to the link.
func (l *ledger) delivered(unit int, to holder, now time.Duration) {
	e, ok := l.entries[unit]
	if ok && e.holder == to && e.until == 0 {
		e.until = now + confirmTimeout
		l.entries[unit] = e
	}
}

// got records that a unit has arrived over the link.
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

// gone records that the link has ended, which frees the units that had not arrived over it.
func (l *ledger) gone(h holder) { delete(l.moved, h) }

// taken returns those of the first units units that are not free.
func (l *ledger) taken(units int, now time.Duration) bitset {
	b := newBitset(units)
	for u, e := range l.entries {
		if u < units && l.holds(e, now) {
			b.add(u)
		}
	}
	return b
}
