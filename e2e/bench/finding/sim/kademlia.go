package sim

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// Parameters of Kademlia: the defaults of kad-dht v0.42.
const (
	bucket    = 20              // peers in a table for each bit of distance, and holders of a record
	alpha     = 10              // peers asked at the same time
	beta      = 3               // nearest peers that must have answered
	refreshed = 10.0 / 60       // greatest age of a table, in hours
	dial      = 2               // round trips to open a connection
	silence   = 3 * time.Second // time after which an absent peer counts as failed
	longest   = 3 * time.Second // bound on a lookup
)

// table returns the routing table of peer i: for each bit of distance, some peers that were up at its
// last refresh.
func (w *World) table(i int) []int {
	looked := -refreshed * w.rnd.Float64()
	var known []int
	for bit := range 64 {
		prefix := (w.peers[i].key ^ 1<<(63-bit)) >> (63 - bit) << (63 - bit)
		from, to := w.between(prefix, prefix+(1<<(63-bit)-1))
		if from == to && bits.Len(uint(len(w.peers))) < bit {
			break
		}
		known = append(known, w.some(from, to, looked)...)
	}
	return known
}

// between returns the index range of the peers with keys from low to high.
func (w *World) between(low, high uint64) (from, to int) {
	from = sort.Search(len(w.peers), func(i int) bool { return w.peers[i].key >= low })
	to = sort.Search(len(w.peers), func(i int) bool { return w.peers[i].key > high })
	return from, to
}

// some draws up to one bucket of the peers from..to-1 that were up at the given hour.
func (w *World) some(from, to int, hour float64) []int {
	var drawn []int
	if to-from > 8*bucket { // about half are up, so drawing at random is fast
		for seen := map[int]bool{}; len(drawn) < bucket && len(seen) < to-from; {
			i := from + w.rnd.IntN(to-from)
			if !seen[i] && w.peers[i].up(hour) {
				drawn = append(drawn, i)
			}
			seen[i] = true
		}
		return drawn
	}
	for i := from; i < to; i++ {
		if w.peers[i].up(hour) {
			drawn = append(drawn, i)
		}
	}
	w.rnd.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn[:min(bucket, len(drawn))]
}

// nearest returns the n peers that are nearest to a key.
func (w *World) nearest(peers []int, key uint64, n int) []int {
	sorted := slices.Clone(peers)
	slices.SortFunc(sorted, func(i, j int) int { return cmp.Compare(w.peers[i].key^key, w.peers[j].key^key) })
	return sorted[:min(n, len(sorted))]
}

// holders returns the peers that keep the records under a key now.
func (w *World) holders(key uint64) map[int]bool {
	var up []int
	for i := range w.peers {
		if w.peers[i].up(0) {
			up = append(up, i)
		}
	}
	holders := map[int]bool{}
	for _, i := range w.nearest(up, key, bucket) {
		holders[i] = true
	}
	return holders
}

// records returns the peers whose records peer h holds: those that have announced themselves since h came
// up, and less than recordLife ago.
func (w *World) records(h int) []int {
	since := max(w.peers[h].sessions[0].from, -recordLife)
	var held []int
	for i := range w.peers {
		if i != h && w.peers[i].announcedSince(since) {
			held = append(held, i)
		}
	}
	return held
}

// A lookup is one Kademlia lookup of the records under a key.
type lookup struct {
	w       *World
	from    int // peer that looks up
	key     uint64
	holders map[int]bool

	heard   []int // peers of all states, nearest first
	state   map[int]progress
	open    []question // queries without an answer yet, ordered by time
	now     time.Duration
	queries int
	silent  int // queries that timed out
	seen    map[int]bool
	found   []finding
}

type progress byte

const (
	heard progress = iota
	waiting
	answered
	gone
)

type question struct {
	at   time.Duration // time of its answer or timeout
	peer int
}

// A finding is a record and the time when it was found.
type finding struct {
	at   time.Duration
	peer int
}

// look runs a lookup of key for peer from, which starts with the peers seeds.
func (w *World) look(from int, key uint64, seeds []int) *lookup {
	l := &lookup{w: w, from: from, key: key, holders: w.holders(key), state: map[int]progress{}, seen: map[int]bool{}}
	l.hear(w.nearest(seeds, key, bucket))
	for !l.done() {
		l.ask()
		if len(l.open) == 0 || l.open[0].at > longest {
			l.now = longest
			break
		}
		q := l.open[0]
		l.open, l.now = l.open[1:], q.at
		l.answer(q.peer)
	}
	return l
}

func (l *lookup) hear(peers []int) {
	for _, p := range peers {
		if _, known := l.state[p]; !known && p != l.from {
			l.state[p] = heard
			l.heard = append(l.heard, p)
		}
	}
	l.heard = l.w.nearest(l.heard, l.key, len(l.heard))
}

// done reports whether enough records were found, or all of the nearest bucket of peers that are still up have
// answered. kad-dht asks all of these as well before it returns.
func (l *lookup) done() bool {
	if len(l.found) >= l.w.Found {
		return true
	}
	left := 0
	for _, p := range l.heard {
		switch l.state[p] {
		case gone:
			continue
		case heard, waiting:
			return false
		}
		if left++; left == bucket {
			break
		}
	}
	return true
}

// ask queries the nearest peers that were not queried yet.
func (l *lookup) ask() {
	for _, p := range l.heard {
		if len(l.open) >= alpha {
			return
		}
		if l.state[p] != heard {
			continue
		}
		l.state[p] = waiting
		l.queries++
		took := silence
		if l.w.peers[p].up(0) {
			took = (1 + dial) * l.w.rtt(l.from, p)
		}
		l.open = append(l.open, question{l.now + took, p})
		slices.SortStableFunc(l.open, func(a, b question) int { return cmp.Compare(a.at, b.at) })
	}
}

// answer processes peer p's answer or timeout.
func (l *lookup) answer(p int) {
	if !l.w.peers[p].up(0) {
		l.state[p] = gone
		l.silent++
		return
	}
	l.state[p] = answered
	if l.holders[p] {
		records := l.w.records(p)
		l.w.rnd.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		for _, r := range records {
			if len(l.found) >= l.w.Found {
				return
			}
			if !l.seen[r] {
				l.seen[r] = true
				l.found = append(l.found, finding{l.now, r})
			}
		}
	}
	l.hear(l.w.nearest(l.w.table(p), l.key, bucket))
}
