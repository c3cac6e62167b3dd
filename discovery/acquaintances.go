package discovery

import (
	"cmp"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	maxAcquaintances = 256
	maxAddrs         = 8   // of one acquaintance
	maxAddr          = 256 // bytes of one; a longer one is nobody's

	forgetAcquaintance = 30 * 24 * time.Hour // since it was met

	// Who is connected to enough needs no more; it tries another at leisure now and
	// then, since that may be in a part of the network that was split off.
	enoughConnected = 24
	leisure         = 30 * time.Second

	atOnce = 16 // acquaintances that are tried together

	// The pause between two tries doubles from first to longest, unless the connection lasts
	// for as long as the first; who is connected to nobody waits no longer than aloneLongest.
	firstPause   = 5 * time.Second
	longestPause = 15 * time.Minute
	aloneLongest = 30 * time.Second
)

// An acquaintance is a peer of the network that was met, or of which the LAN has told.
type acquaintance struct {
	info    p2ppeer.AddrInfo
	met     time.Time     // the last time; zero: never
	reached bool          // we have connected to it, and not only it to us
	missed  bool          // it was not reached the last time
	tried   time.Time     // the last time, unless all are to be tried anew
	pause   time.Duration // after that
}

// Acquaintances is the pure core of healing: it remembers peers, and decides whom to try to
// connect to again. Any of them introduces as a supernode does; so who has lost its
// link, was asleep or restarts finds the others again though all supernodes are gone, and two
// parts of a network that were split are joined by the first that reaches across.
//
// Few are connected: all that are not are tried, each after a pause that grows. Enough
// are: one at a time is tried, the one whose turn is longest ago. It is bounded, and prefers
// to forget who was never met, then who was never reached, then who was not met for long.
type acquaintances struct {
	all     map[p2ppeer.ID]*acquaintance
	leisure time.Time // when one was tried at leisure
	changes int       // of what is worth to be kept
}

func newAcquaintances() *acquaintances {
	return &acquaintances{all: make(map[p2ppeer.ID]*acquaintance)}
}

// heard notes that a peer may be at the addresses of info.
func (q *acquaintances) heard(info p2ppeer.AddrInfo) {
	a := q.entry(info.ID, acquaintance{})
	if a == nil {
		return
	}
	a.info.Addrs = mergeAddrs(info.Addrs, a.info.Addrs)
	a.pause = min(a.pause, firstPause)
}

// met notes a connection to a peer, which we have made if reached.
func (q *acquaintances) met(info p2ppeer.AddrInfo, reached bool, now time.Time) {
	a := q.entry(info.ID, acquaintance{met: now, reached: reached})
	if a == nil {
		return
	}
	addrs := mergeAddrs(info.Addrs, nil)
	if a.met.IsZero() || reached && !a.reached || !slices.EqualFunc(addrs, a.info.Addrs, ma.Multiaddr.Equal) {
		q.changes++
	}
	if len(addrs) > 0 {
		a.info.Addrs = addrs
	}
	a.met, a.reached, a.missed = now, reached || a.reached, false
}

// failed notes that a peer was not reached. One that was never met is forgotten
// in the end.
func (q *acquaintances) failed(id p2ppeer.ID, now time.Time) {
	a := q.all[id]
	if a == nil {
		return
	}
	a.missed = true
	never := a.met.IsZero()
	if never && a.pause == longestPause || !never && now.Sub(a.met) > forgetAcquaintance {
		delete(q.all, id)
		q.changes++
	}
}

// hurry has all be tried anew at once: something has changed.
func (q *acquaintances) hurry() {
	q.leisure = time.Time{}
	for _, a := range q.all {
		a.tried, a.pause = time.Time{}, 0
	}
}

// due returns whom to try to connect to now, at most atOnce of them, of those that are not
// connected. Each has to be followed by met or failed.
func (q *acquaintances) due(now time.Time, connected func(p2ppeer.ID) bool) []p2ppeer.AddrInfo {
	var away []*acquaintance
	for id, a := range q.all {
		if !connected(id) {
			away = append(away, a)
			continue
		}
		a.met = now // it is being met all the time
		if now.Sub(a.tried) >= firstPause {
			a.pause = 0
		}
	}
	have, room, longest := len(q.all)-len(away), atOnce, longestPause
	switch {
	case have == 0:
		longest = aloneLongest
	case have >= enoughConnected && now.Sub(q.leisure) < leisure:
		return nil
	case have >= enoughConnected:
		room = 1
	}
	away = slices.DeleteFunc(away, func(a *acquaintance) bool { return now.Sub(a.tried) < min(a.pause, longest) })
	slices.SortFunc(away, func(a, b *acquaintance) int {
		return cmp.Or(a.tried.Compare(b.tried), b.met.Compare(a.met), cmp.Compare(a.info.ID, b.info.ID))
	})
	var out []p2ppeer.AddrInfo
	for _, a := range away[:min(room, len(away))] {
		a.tried, q.leisure = now, now
		a.pause = min(max(2*a.pause, firstPause), longestPause)
		out = append(out, a.info)
	}
	return out
}

// isNews reports whether it is news that a peer is there: it was never met, or not reached
// the last time.
func (q *acquaintances) isNews(id p2ppeer.ID) bool {
	a := q.all[id]
	return a != nil && (a.missed || a.met.IsZero())
}

// entry returns id's acquaintance, made if it is worth more than one that can be forgotten
// for it, else nil.
func (q *acquaintances) entry(id p2ppeer.ID, like acquaintance) *acquaintance {
	if a := q.all[id]; a != nil {
		return a
	}
	if len(q.all) >= maxAcquaintances {
		least := slices.MinFunc(q.list(), worth)
		if worth(&like, least) < 0 {
			return nil
		}
		delete(q.all, least.info.ID)
	}
	a := &acquaintance{info: p2ppeer.AddrInfo{ID: id}}
	q.all[id] = a
	return a
}

// worth compares by how likely it is that a peer can be reached again.
func worth(a, b *acquaintance) int {
	reached := func(x *acquaintance) int {
		if x.reached {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(reached(a), reached(b)), a.met.Compare(b.met))
}

// list returns all acquaintances, in the order of their IDs.
func (q *acquaintances) list() []*acquaintance {
	out := make([]*acquaintance, 0, len(q.all))
	for _, a := range q.all {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *acquaintance) int { return cmp.Compare(a.info.ID, b.info.ID) })
	return out
}

// mergeAddrs returns the first maxAddrs of the new addresses and the old, each once, but
// for those that are too long.
func mergeAddrs(recent, old []ma.Multiaddr) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, a := range slices.Concat(recent, old) {
		if len(out) < maxAddrs && len(a.Bytes()) <= maxAddr && !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
