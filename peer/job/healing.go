package job

import "time"

// A Healing decides which rank that has lost a replica gets a new one next, and measures how long
// it lacked one. It starts no goroutine and reads no clock: now is the time since the job began.
//
//	whole --- a replica fails ---> ailing --- Next ---> served --- Healed ---> whole
//	                                 ^                    |
//	                                 +----- GaveUp -------+   followed by a pause
type Healing struct {
	ranks []ailing
	pause func(failed int) time.Duration // time before the next attempt
}

// ailing is the state of one rank.
type ailing struct {
	lacks  bool          // the rank lacks a replica
	since  time.Duration // time since which it lacks one
	served bool          // a search runs, or a new replica has yet to catch up
	failed int           // failed attempts in a row
	next   time.Duration // earliest time of the next attempt
}

// NewHealing returns the healing of a job of n ranks with all their replicas. pause
// returns the time between two attempts after the given number of failures in a row; healing limits it.
func NewHealing(n int, pause func(failed int) time.Duration) *Healing {
	return &Healing{ranks: make([]ailing, n), pause: pause}
}

// Observe records whether a rank lacks a replica, and reports whether that is new.
func (h *Healing) Observe(rank int, lacks bool, now time.Duration) (begins bool) {
	a := &h.ranks[rank]
	if begins = lacks && !a.lacks; begins {
		a.since, a.failed, a.next = now, 0, 0
	}
	a.lacks = lacks
	return begins
}

// Next returns the rank that has lacked a replica for longest, of those that may be served now. The
// caller then calls Serve.
func (h *Healing) Next(now time.Duration) (rank int, ok bool) {
	for i, a := range h.ranks {
		if a.lacks && !a.served && a.next <= now && (!ok || a.since < h.ranks[rank].since) {
			rank, ok = i, true
		}
	}
	return rank, ok
}

// Serve records that a search for a replica of rank has started.
func (h *Healing) Serve(rank int) { h.ranks[rank].served = true }

// Served reports whether Serve was called, and neither GaveUp nor Healed since.
func (h *Healing) Served(rank int) bool { return h.ranks[rank].served }

// Failed returns the number of failed attempts for a rank since it began to lack a replica.
func (h *Healing) Failed(rank int) int { return h.ranks[rank].failed }

// longestPause limits the pause between two attempts for a rank: only a request shows that a slot
// is free now.
const longestPause = 2 * time.Second

// GaveUp records that the attempt failed. The pause before the next attempt grows with the number
// of failures.
func (h *Healing) GaveUp(rank int, now time.Duration) {
	a := &h.ranks[rank]
	a.served = false
	a.next = now + min(h.pause(a.failed), longestPause)
	a.failed++
}

// Healed records that the rank has a new replica, and returns how long it lacked one.
func (h *Healing) Healed(rank int, now time.Duration) time.Duration {
	a := &h.ranks[rank]
	a.served, a.failed = false, 0
	return now - a.since
}
