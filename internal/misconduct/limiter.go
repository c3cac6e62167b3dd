package misconduct

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// every is how often a peer is named.
	every = time.Minute
	// maxNamed is how many peers are named within that time.
	maxNamed = 64
)

// A limiter says who is to be named. It is a pure core; its zero value has named
// nobody, and names each once within every.
type limiter struct {
	times  int // that each is named within every; 0 is once
	named  map[p2ppeer.ID]*record
	others record // those for whom there was no room
}

type record struct {
	since  time.Time // when the peer was named
	said   int       // how often it was again
	unsaid int       // what else it has done since
}

// due reports whether the peer is to be named now, and what it, or peers of whom there
// are too many, have done besides. With crowd it is not about this peer alone.
func (l *limiter) due(p p2ppeer.ID, now time.Time) (say bool, unsaid int, crowd bool) {
	if r := l.named[p]; r != nil {
		say, unsaid = r.due(l.times, now)
		return say, unsaid, false
	}
	if len(l.named) >= maxNamed {
		l.forget(now)
	}
	if len(l.named) >= maxNamed {
		say, unsaid = l.others.due(l.times, now)
		return say, unsaid, true
	}
	if l.named == nil {
		l.named = make(map[p2ppeer.ID]*record)
	}
	l.named[p] = &record{since: now}
	return true, 0, false
}

func (r *record) due(times int, now time.Time) (say bool, unsaid int) {
	if !r.since.IsZero() && now.Sub(r.since) < every {
		if r.said+1 < times {
			r.said++
			return true, 0
		}
		r.unsaid++
		return false, 0
	}
	unsaid = r.unsaid
	*r = record{since: now}
	return true, unsaid
}

// forget makes room of peers that have been quiet.
func (l *limiter) forget(now time.Time) {
	for p, r := range l.named {
		if now.Sub(r.since) >= every {
			delete(l.named, p)
		}
	}
}
