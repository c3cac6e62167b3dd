package faultdetect

import "time"

// health measures how far a member trusts its own observations. A member that misses its ticks, or hears
// from no other member, may find live members silent. So it extends its timeouts, like Lifeguard's local
// health multiplier.
type health struct {
	score int           // 0: healthy
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

// notice checks the time since the last tick. If it exceeds two ticks, this member was starved. Suspects
// get that time added, since their answers may be unread; after more than a period, their full time
// starts again. A gap that is short compared with the tolerated hang is ignored.
func (d *Detector) notice(gap time.Duration) {
	step := d.period / TicksPerPeriod
	if gap <= max(2*step, d.hang/16) {
		return
	}
	d.health.worsen()
	d.health.woke = d.ticked + gap
	for _, q := range d.suspicions {
		q.until += gap - step
		if gap > d.period {
			q.until = d.health.woke + q.span
		}
	}
}
