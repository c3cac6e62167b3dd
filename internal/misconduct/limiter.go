package misconduct

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// every is the period within which the log lines of a peer are limited.
	every = time.Minute
	// maxNamed bounds the peers that are logged individually in that period.
	maxNamed = 64
)

// A limiter decides which peers to log. It is a pure core. Its zero value logs each peer once per period.
type limiter struct {
	times  int // log lines per peer and period; zero means one
	named  map[p2ppeer.ID]*record
	others record // all peers that are not in named
}

type record struct {
	since      time.Time // start of the period
	said       int       // additional log lines in the period
	suppressed int       // suppressed events in the period
}

// due reports whether to log an event of the peer now, and how many events were suppressed before. If
// crowd is true, the result applies to all peers without a record of their own.
func (l *limiter) due(p p2ppeer.ID, now time.Time) (log bool, suppressed int, crowd bool) {
	if r := l.named[p]; r != nil {
		log, suppressed = r.due(l.times, now)
		return log, suppressed, false
	}
	if len(l.named) >= maxNamed {
		l.forget(now)
	}
	if len(l.named) >= maxNamed {
		log, suppressed = l.others.due(l.times, now)
		return log, suppressed, true
	}
	if l.named == nil {
		l.named = make(map[p2ppeer.ID]*record)
	}
	l.named[p] = &record{since: now}
	return true, 0, false
}

func (r *record) due(times int, now time.Time) (log bool, suppressed int) {
	if !r.since.IsZero() && now.Sub(r.since) < every {
		if r.said+1 < times {
			r.said++
			return true, 0
		}
		r.suppressed++
		return false, 0
	}
	suppressed = r.suppressed
	*r = record{since: now}
	return true, suppressed
}

// forget removes the records of peers whose period is over.
func (l *limiter) forget(now time.Time) {
	for p, r := range l.named {
		if now.Sub(r.since) >= every {
			delete(l.named, p)
		}
	}
}
