package node

import (
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Bounds on the record of peers that speak another version of the protocol.
const (
	maxOutdated = 256
	outdatedFor = time.Hour
)

// outdated remembers the peers that were disconnected because of their version, so that a submitter learns
// why they do not take part. The zero value is ready for use. Its methods are safe for concurrent use.
type outdated struct {
	mu  sync.Mutex
	met map[p2ppeer.ID]time.Time
}

// note records a peer that connected at the time now. If too many peers are recorded, it removes arbitrary
// ones.
func (o *outdated) note(id p2ppeer.ID, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.met == nil {
		o.met = make(map[p2ppeer.ID]time.Time)
	}
	for other := range o.met {
		if len(o.met) < maxOutdated {
			break
		}
		delete(o.met, other)
	}
	o.met[id] = now
}

// list returns the peers that connected within the last hour.
func (o *outdated) list(now time.Time) (ids []p2ppeer.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, met := range o.met {
		if now.Sub(met) > outdatedFor {
			delete(o.met, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
