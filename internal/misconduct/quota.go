package misconduct

import (
	"errors"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// errQuota reports that a peer, or all peers together, have used up their quota.
var errQuota = errors.New("too many concurrent requests")

// A Quota limits how much of a scarce resource strangers hold, such as streams without a first message. It has a
// limit for all peers together and a limit for each peer, so that a single peer cannot lock out the others. Its
// methods are safe for concurrent use.
type Quota struct {
	all, each int

	mu   sync.Mutex
	held map[p2ppeer.ID]int
	sum  int
}

// NewQuota returns a quota with a limit for all peers together and one for each peer.
func NewQuota(all, each int) *Quota {
	return &Quota{all: all, each: each, held: make(map[p2ppeer.ID]int)}
}

// Take acquires one unit for p until the caller calls give, once. It fails if no unit is left for p.
func (q *Quota) Take(p p2ppeer.ID) (give func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sum >= q.all || q.held[p] >= q.each {
		return nil, errQuota
	}
	q.sum++
	q.held[p]++
	return func() { q.give(p) }, nil
}

func (q *Quota) give(p p2ppeer.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum--
	if q.held[p]--; q.held[p] == 0 {
		delete(q.held, p)
	}
}
