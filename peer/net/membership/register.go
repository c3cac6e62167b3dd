package membership

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	// refusedFor is the time for which a refused peer is rejected without another exchange. So repeated
	// attempts are cheap, and a peer that has just received its token soon gets in.
	refusedFor = 10 * time.Second
	// maxRefused bounds the number of remembered refusals.
	maxRefused = 4096
	// unconnectedFor is the time for which an admission lasts without a connection.
	unconnectedFor = time.Minute
)

// A register records admitted peers and recently refused ones. It is a pure core; its zero value is empty.
type register struct {
	admitted map[p2ppeer.ID]admission
	refused  map[p2ppeer.ID]time.Time // end of each refusal
}

type admission struct {
	person string
	until  time.Time // expiry of the token
	seen   time.Time // last time connected or admitted
}

// admit records that p has shown the token t.
func (r *register) admit(p p2ppeer.ID, t Token, now time.Time) {
	if r.admitted == nil {
		r.admitted = make(map[p2ppeer.ID]admission)
	}
	r.admitted[p] = admission{person: t.person(), until: t.Expires, seen: now}
	delete(r.refused, p)
}

// refuse records that p has shown no valid token.
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

// forget makes room. It removes expired refusals, and arbitrary others if necessary.
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

func (r *register) member(p p2ppeer.ID, now time.Time) bool {
	a, ok := r.admitted[p]
	return ok && now.Before(a.until)
}

// person returns the person whose token has admitted p, or "" if p is not admitted.
func (r *register) person(p p2ppeer.ID, now time.Time) string {
	if !r.member(p, now) {
		return ""
	}
	return r.admitted[p].person
}

func (r *register) recentlyRefused(p p2ppeer.ID, now time.Time) bool {
	return now.Before(r.refused[p])
}

// review removes and returns the peers whose tokens have expired. It also removes peers that have not been
// connected for a while.
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
