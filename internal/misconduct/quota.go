package misconduct

import (
	"errors"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// ErrQuota says that a peer, or all together, hold as much as they may.
var ErrQuota = errors.New("too many at a time")

// A Quota bounds what strangers hold of something scarce, such as streams that have yet
// to say what they are for: all together, and each to a share, so that one alone does not
// keep the others out. Its methods are safe for concurrent use.
type Quota struct {
	all, each int

	mu   sync.Mutex
	held map[p2ppeer.ID]int
	sum  int
}

// NewQuota returns a quota of so many for all together, and for each peer.
func NewQuota(all, each int) *Quota {
	return &Quota{all: all, each: each, held: make(map[p2ppeer.ID]int)}
}

// Take takes one for p until give is called, once. The error is ErrQuota.
func (q *Quota) Take(p p2ppeer.ID) (give func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sum >= q.all || q.held[p] >= q.each {
		return nil, ErrQuota
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
