package job

import (
	"math/rand/v2"
	"time"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A healing decides which rank that has lost a replica gets a new one next, and measures how long
// it lacked one. It starts no goroutine and reads no clock: now is the time since the job began.
//
//	whole --- a replica fails ---> ailing --- Next ---> served --- Healed ---> whole
//	                                 ^                    |
//	                                 +----- GaveUp -------+   followed by a pause
type healing struct {
	ranks []ailing
	rnd   *rand.Rand
}

// ailing is the state of one rank.
type ailing struct {
	lacks  bool          // it lacks a replica
	since  time.Duration // when it began to lack one
	served bool          // a search runs, or a new replica has yet to catch up
	failed int           // failed attempts in a row
	next   time.Duration // earliest time of the next attempt
}

// newHealing returns the healing of a job of n ranks with all their replicas.
func newHealing(n int, rnd *rand.Rand) *healing {
	return &healing{ranks: make([]ailing, n), rnd: rnd}
}

// Observe records whether a rank lacks a replica, and reports whether that is new.
func (h *healing) Observe(rank int, lacks bool, now time.Duration) (begins bool) {
	a := &h.ranks[rank]
	if begins = lacks && !a.lacks; begins {
		a.since, a.failed, a.next = now, 0, 0
	}
	a.lacks = lacks
	return begins
}

// Next returns the rank that has lacked a replica for longest, of those that may be served now. The
// caller then calls Serve.
func (h *healing) Next(now time.Duration) (rank int, ok bool) {
	for i, a := range h.ranks {
		if a.lacks && !a.served && a.next <= now && (!ok || a.since < h.ranks[rank].since) {
			rank, ok = i, true
		}
	}
	return rank, ok
}

// Serve records that a search for a replica of rank has started.
func (h *healing) Serve(rank int) { h.ranks[rank].served = true }

// Served reports whether Serve was called, and neither GaveUp nor Healed since.
func (h *healing) Served(rank int) bool { return h.ranks[rank].served }

// Failed returns the number of failed attempts for a rank since it began to lack a replica.
func (h *healing) Failed(rank int) int { return h.ranks[rank].failed }

// longestPause limits the pause between two attempts for a rank: only a request shows that a slot
// is free now.
const longestPause = 2 * time.Second

// GaveUp records that the attempt failed. The pause before the next attempt grows with the number
// of failures.
func (h *healing) GaveUp(rank int, now time.Duration) {
	a := &h.ranks[rank]
	a.served = false
	a.next = now + min(reservation.Backoff(a.failed, h.rnd), longestPause)
	a.failed++
}

// Healed records that the rank has a new replica, and returns how long it lacked one.
func (h *healing) Healed(rank int, now time.Duration) time.Duration {
	a := &h.ranks[rank]
	a.served, a.failed = false, 0
	return now - a.since
}
