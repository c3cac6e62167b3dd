package membership

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// refusedFor is how long a peer is not looked at again: long enough that asking
	// in a loop costs nothing, short enough for one that has just got its token.
	refusedFor = 10 * time.Second
	// maxRefused bounds how many are remembered.
	maxRefused = 4096
	// unconnectedFor is how long an admission lasts without a connection.
	unconnectedFor = time.Minute
)

// A register says who has been admitted, and who has been refused just now. It is a
// pure core; its zero value is empty.
type register struct {
	admitted map[p2ppeer.ID]admission
	refused  map[p2ppeer.ID]time.Time // until when
}

type admission struct {
	person string
	until  time.Time // the token expires
	seen   time.Time // connected, or admitted
}

// admit notes that p has shown the token t.
func (r *register) admit(p p2ppeer.ID, t Token, now time.Time) {
	if r.admitted == nil {
		r.admitted = make(map[p2ppeer.ID]admission)
	}
	r.admitted[p] = admission{person: t.Person(), until: t.Expires, seen: now}
	delete(r.refused, p)
}

// refuse notes that p has shown none, or one that is not good enough.
func (r *register) refuse(p p2ppeer.ID, now time.Time) {
	delete(r.admitted, p)
	if r.refused == nil {
		r.refused = make(map[p2ppeer.ID]time.Time)
	}
	if len(r.refused) >= maxRefused {
		r.forget(now)
	}
	r.refused[p] = now.Add(refusedFor)
}

// forget makes room: of all that is over, else of any one.
func (r *register) forget(now time.Time) {
	for p, until := range r.refused {
		if !now.Before(until) {
			delete(r.refused, p)
		}
	}
	for p := range r.refused {
		if len(r.refused) < maxRefused {
			return
		}
		delete(r.refused, p)
	}
}

// member reports whether p is admitted.
func (r *register) member(p p2ppeer.ID, now time.Time) bool {
	a, ok := r.admitted[p]
	return ok && now.Before(a.until)
}

// person returns whose token has admitted p; empty if none has.
func (r *register) person(p p2ppeer.ID, now time.Time) string {
	if !r.member(p, now) {
		return ""
	}
	return r.admitted[p].person
}

// shunned reports whether p was refused just now.
func (r *register) shunned(p p2ppeer.ID, now time.Time) bool {
	return now.Before(r.refused[p])
}

// review returns the peers whose tokens have expired, which are refused from now on,
// and forgets those who have not been connected for long.
func (r *register) review(connected func(p2ppeer.ID) bool, now time.Time) (expired []p2ppeer.ID) {
	for p, a := range r.admitted {
		switch {
		case !now.Before(a.until):
			delete(r.admitted, p)
			expired = append(expired, p)
		case connected(p):
			a.seen = now
			r.admitted[p] = a
		case now.Sub(a.seen) >= unconnectedFor:
			delete(r.admitted, p)
		}
	}
	return expired
}
