package connected

import (
	"cmp"
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	maxKnown = 256
	maxAddrs = 8   // addresses of one peer
	maxAddr  = 256 // bytes of one address; longer addresses are dropped

	forgetAfter = 30 * 24 * time.Hour // time since the last meeting

	// A peer with enoughConnected connections needs no more. Once per leisurePeriod it still tries one more
	// known peer, because that peer may be in a part of the network that was split off.
	enoughConnected = 24
	leisurePeriod   = 30 * time.Second

	atOnce = 16 // known peers tried at the same time

	// The pause between two attempts doubles from firstPause to longestPause. It is reset once a
	// connection has lasted for firstPause. A peer without any connection waits at most aloneLongest.
	firstPause   = 5 * time.Second
	longestPause = 15 * time.Minute
	aloneLongest = 30 * time.Second
)

// A knownPeer is a known peer of the network: one that was met, or one that mDNS announced.
type knownPeer struct {
	info    p2ppeer.AddrInfo
	met     time.Time     // time of the last meeting; zero if never met
	reached bool          // this peer has dialled it successfully
	missed  bool          // the last attempt to reach the peer failed
	tried   time.Time     // time of the last attempt, or zero if the next one is due at once
	pause   time.Duration // pause after the last attempt
}

// knownPeers is the pure core that reconnects a peer to its network. It remembers known peers and
// decides which of them to dial again. Every known peer can introduce this one, as a supernode does. So a
// peer that lost its link, slept or restarted finds the others even if all supernodes have vanished. Two
// parts of a split network join as soon as one peer reaches across.
//
// While few known peers are connected, all the others are tried, each after a growing pause. Once enough
// are connected, one of the others is tried at a time: that with the oldest attempt. The number of known peers
// is bounded. Peers that were never dialled successfully are forgotten first, and among them those whose
// last meeting is oldest. A peer that was never met counts as the oldest of all.
type knownPeers struct {
	all     map[p2ppeer.ID]*knownPeer
	leisure time.Time // time of the last attempt; see leisurePeriod

	restoring func(p2ppeer.ID) bool // reports whether the watch dials a peer
	changes   int                   // number of changes to the data that the file keeps
}

func newKnownPeers() *knownPeers {
	return &knownPeers{all: make(map[p2ppeer.ID]*knownPeer), restoring: func(p2ppeer.ID) bool { return false }}
}

// heard records that a peer may be reachable at the addresses of info.
func (q *knownPeers) heard(info p2ppeer.AddrInfo) {
	a := q.entry(info.ID, knownPeer{})
	if a == nil {
		return
	}
	a.info.Addrs = mergeAddrs(info.Addrs, a.info.Addrs)
	a.pause = min(a.pause, firstPause)
}

// met records a connection to a peer; reached means that this peer dialled it.
func (q *knownPeers) met(info p2ppeer.AddrInfo, reached bool, now time.Time) {
	a := q.entry(info.ID, knownPeer{met: now, reached: reached})
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

// failed records that a peer was not reached. A peer that was never met is forgotten once its pause has
// grown to longestPause. Any other peer is forgotten when it was last met more than forgetAfter ago.
func (q *knownPeers) failed(id p2ppeer.ID, now time.Time) {
	a := q.all[id]
	if a == nil {
		return
	}
	a.missed = true
	never := a.met.IsZero()
	if never && a.pause == longestPause || !never && now.Sub(a.met) > forgetAfter {
		delete(q.all, id)
		q.changes++
	}
}

// retryNow makes every known peer due at once, because something has changed.
func (q *knownPeers) retryNow() {
	q.leisure = time.Time{}
	for _, a := range q.all {
		a.tried, a.pause = time.Time{}, 0
	}
}

// due returns at most atOnce peers that are not connected and should be dialled now. The caller must
// report the result of each with met or failed.
func (q *knownPeers) due(now time.Time, connected func(p2ppeer.ID) bool) []p2ppeer.AddrInfo {
	var away []*knownPeer
	for id, a := range q.all {
		if !connected(id) {
			away = append(away, a)
			continue
		}
		a.met = now // a connected peer counts as met
		if now.Sub(a.tried) >= firstPause {
			a.pause = 0
		}
	}
	have, room, longest := len(q.all)-len(away), atOnce, longestPause
	switch {
	case have == 0:
		longest = aloneLongest
	case have >= enoughConnected && now.Sub(q.leisure) < leisurePeriod:
		return nil
	case have >= enoughConnected:
		room = 1
	}
	away = slices.DeleteFunc(away, func(a *knownPeer) bool { return q.restoring(a.info.ID) || now.Sub(a.tried) < min(a.pause, longest) })
	slices.SortFunc(away, func(a, b *knownPeer) int {
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

// wasUnreachable reports whether a peer was never met, or not reached by the last attempt.
func (q *knownPeers) wasUnreachable(id p2ppeer.ID) bool {
	a := q.all[id]
	return a != nil && (a.missed || a.met.IsZero())
}

// entry returns the entry of id. It creates one if there is room or if like is worth more than the least
// valuable entry, which it then replaces; otherwise it returns nil.
func (q *knownPeers) entry(id p2ppeer.ID, like knownPeer) *knownPeer {
	if a := q.all[id]; a != nil {
		return a
	}
	if len(q.all) >= maxKnown {
		least := slices.MinFunc(q.list(), compareValue)
		if compareValue(&like, least) < 0 {
			return nil
		}
		delete(q.all, least.info.ID)
	}
	a := &knownPeer{info: p2ppeer.AddrInfo{ID: id}}
	q.all[id] = a
	return a
}

// compareValue compares two peers by how likely they can be reached again.
func compareValue(a, b *knownPeer) int {
	reached := func(x *knownPeer) int {
		if x.reached {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(reached(a), reached(b)), a.met.Compare(b.met))
}

// list returns all known peers, ordered by ID.
func (q *knownPeers) list() []*knownPeer {
	return slices.SortedFunc(maps.Values(q.all), func(a, b *knownPeer) int { return cmp.Compare(a.info.ID, b.info.ID) })
}

// mergeAddrs returns the first maxAddrs distinct addresses of recent and old together. It drops addresses
// longer than maxAddr.
func mergeAddrs(recent, old []ma.Multiaddr) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, a := range slices.Concat(recent, old) {
		if len(out) < maxAddrs && len(a.Bytes()) <= maxAddr && !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
