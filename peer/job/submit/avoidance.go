package submit

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// An avoidance records the peers that a job does not ask for slots for a while, because they were
// lost or could not help. A peer that has failed once may have been restarted, so the job soon asks
// it again. The pause doubles with each further failure. The caller passes the current time.
type avoidance map[p2ppeer.ID]avoided

// avoided is the record of one peer.
type avoided struct {
	failures int
	until    time.Time
	distrust bool // avoided for the rest of the job
}

// The first and the longest pause after a failure of a peer.
const (
	avoidFirst = 2 * time.Second // long enough for the job's peers to agree that it is lost
	avoidMost  = 32 * time.Second
)

// Failed records that p was lost or could not help.
func (a avoidance) Failed(p p2ppeer.ID, now time.Time) {
	at := a[p]
	pause := min(avoidMost, avoidFirst<<min(at.failures, 8))
	a[p] = avoided{failures: at.failures + 1, until: now.Add(pause), distrust: at.distrust}
}

// Distrust records that p broke the protocol, or that its process deviated from most replicas of
// its rank. The next process there might deviate, too.
func (a avoidance) Distrust(p p2ppeer.ID) {
	at := a[p]
	at.distrust = true
	a[p] = at
}

// Avoids reports whether p is not to be asked now.
func (a avoidance) Avoids(p p2ppeer.ID, now time.Time) bool {
	return a[p].distrust || now.Before(a[p].until)
}
