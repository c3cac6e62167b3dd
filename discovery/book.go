package discovery

import (
	"cmp"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	maxKnown    = 1024      // peers that the book remembers
	maxMisses   = 3         // failures to reach a peer in a row after which it is forgotten
	forgetAfter = time.Hour // time without a hint or an answer
)

// A Known is a peer that has answered, with the state of its last answer.
type Known struct {
	AddrInfo p2ppeer.AddrInfo
	Offer    Offer
	RTT      time.Duration // round-trip time of the last answer
	Answered time.Time     // time of the last answer, by the local clock
}

// entry is the book's record of one peer, which may be only a hint so far.
type entry struct {
	Known
	news   time.Time // last hint or answer
	misses int       // failed attempts to reach the peer since then
}

// A book remembers peers found by searches. It is safe for concurrent use and reads no clock.
type book struct {
	mu      sync.Mutex
	entries map[p2ppeer.ID]*entry
}

func newBook() *book { return &book{entries: make(map[p2ppeer.ID]*entry)} }

// hint records that a peer may be reachable at the addresses of info.
func (b *book) hint(info p2ppeer.AddrInfo, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entry(info.ID, now); e != nil {
		e.news = now
		if len(info.Addrs) > 0 {
			e.AddrInfo = info
		}
	}
}

// answered records a peer's answer.
func (b *book) answered(c Candidate, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entry(c.AddrInfo.ID, now); e != nil {
		*e = entry{Known: Known{c.AddrInfo, c.Offer, c.RTT, now}, news: now}
	}
}

// missed records that a peer could not be reached.
func (b *book) missed(id p2ppeer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil {
		return
	}
	if e.misses++; e.misses >= maxMisses {
		delete(b.entries, id)
	}
}

// entry returns the entry of id. It creates one if there is room; otherwise it returns nil.
func (b *book) entry(id p2ppeer.ID, now time.Time) *entry {
	if e := b.entries[id]; e != nil {
		return e
	}
	if len(b.entries) >= maxKnown {
		b.prune(now)
	}
	if len(b.entries) >= maxKnown {
		return nil
	}
	e := &entry{Known: Known{AddrInfo: p2ppeer.AddrInfo{ID: id}}, news: now}
	b.entries[id] = e
	return e
}

func (b *book) prune(now time.Time) {
	for id, e := range b.entries {
		if now.Sub(e.news) > forgetAfter {
			delete(b.entries, id)
		}
	}
}

// list returns all peers of the book: first those that have answered, nearest first, then those known
// only from hints.
func (b *book) list(now time.Time) []Known {
	b.mu.Lock()
	b.prune(now)
	known := make([]Known, 0, len(b.entries))
	for _, e := range b.entries {
		known = append(known, e.Known)
	}
	b.mu.Unlock()
	slices.SortFunc(known, func(x, y Known) int {
		if xHint, yHint := x.Answered.IsZero(), y.Answered.IsZero(); xHint != yHint {
			if yHint {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.RTT, y.RTT), cmp.Compare(x.AddrInfo.ID, y.AddrInfo.ID))
	})
	return known
}
