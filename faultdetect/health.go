package faultdetect

import "time"

// health measures how far a member trusts its own observations. A member that misses its ticks, or hears
// from no other member, may find live members silent. So it extends its timeouts, like Lifeguard's local
// health multiplier.
type health struct {
	score int           // 0 if this member is healthy
	ill   bool          // the score has risen in this period
	woke  time.Duration // end of the last gap between ticks
}

// maxScore is the value that Lifeguard uses.
const maxScore = 8

func (h *health) worsen() {
	h.score, h.ill = min(h.score+1, maxScore), true
}

// recover is called once per period.
func (h *health) recover() {
	if !h.ill && h.score > 0 {
		h.score--
	}
	h.ill = false
}

// scale returns the timeout for something that takes d when this member is healthy.
func (h *health) scale(d time.Duration) time.Duration { return d * time.Duration(1+h.score) }
