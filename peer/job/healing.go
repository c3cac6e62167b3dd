package job

import (
	"math/rand/v2"
	"time"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A healing decides which rank that has lost a replica gets a new one next, and
// how long it was without. It starts no goroutine and reads no clock: now is the
// time since the job began.
//
//	whole --- a replica fails ---> ailing --- Next ---> served --- Healed ---> whole
//	                                 ^                    |
//	                                 +----- GaveUp -------+   not before a pause
type healing struct {
	ranks []ailing
	rnd   *rand.Rand
}

// ailing is what is known of one rank.
type ailing struct {
	lacks  bool          // a replica
	since  time.Duration // when it began to
	served bool          // somebody is being brought up to date, or looked for
	failed int           // attempts in a row
	next   time.Duration // not to be served before
}

// newHealing returns the healing of a job of n ranks, all whole.
func newHealing(n int, rnd *rand.Rand) *healing {
	return &healing{ranks: make([]ailing, n), rnd: rnd}
}

// Observe says whether a rank lacks a replica, and reports whether it begins to.
func (h *healing) Observe(rank int, lacks bool, now time.Duration) (begins bool) {
	a := &h.ranks[rank]
	if begins = lacks && !a.lacks; begins {
		a.since, a.failed, a.next = now, 0, 0
	}
	a.lacks = lacks
	return begins
}

// Next returns the rank that has waited longest of those whose turn it is. Whoever
// serves it says so by Serve.
func (h *healing) Next(now time.Duration) (rank int, ok bool) {
	for i, a := range h.ranks {
		if a.lacks && !a.served && a.next <= now && (!ok || a.since < h.ranks[rank].since) {
			rank, ok = i, true
		}
	}
	return rank, ok
}

// Serve says that a replica is being looked for.
func (h *healing) Serve(rank int) { h.ranks[rank].served = true }

// Served reports whether Serve has been said, and neither GaveUp nor Healed since.
func (h *healing) Served(rank int) bool { return h.ranks[rank].served }

// Failed returns how many attempts for a rank have come to nothing since it began to
// lack a replica.
func (h *healing) Failed(rank int) int { return h.ranks[rank].failed }

// longestPause bounds the pause between two attempts for a rank: only asking shows that a slot is free now.
const longestPause = 2 * time.Second

// GaveUp says that this came to nothing. The next attempt has to wait, the longer
// the more of them have failed.
func (h *healing) GaveUp(rank int, now time.Duration) {
	a := &h.ranks[rank]
	a.served = false
	a.next = now + min(reservation.Backoff(a.failed, h.rnd), longestPause)
	a.failed++
}

// Healed says that the rank has got a replica, and returns how long it was without.
func (h *healing) Healed(rank int, now time.Duration) time.Duration {
	a := &h.ranks[rank]
	a.served, a.failed = false, 0
	return now - a.since
}
