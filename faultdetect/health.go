package faultdetect

import "time"

// health is how far a member trusts itself. One that misses its own ticks, or
// hears nothing from anybody, finds others silent that are not; so it takes its
// time, as Lifeguard's local health multiplier has it.
type health struct {
	score int           // 0 is well
	ill   bool          // the score has risen in this period
	woke  time.Duration // the last time that ticks had been missed before
}

// maxScore is Lifeguard's.
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

// scale is how long to allow for something that takes d when well.
func (h *health) scale(d time.Duration) time.Duration { return d * time.Duration(1+h.score) }

// notice looks at how long it is since the last tick. After more than two
// ticks' time this member has been starved: suspects get that time back, since
// their answers may lie unread; after a period they are asked anew. A gap that is short beside the
// tolerated hang does no harm.
func (d *Detector) notice(gap time.Duration) {
	step := d.period / TicksPerPeriod
	if gap <= max(2*step, d.hang/16) {
		return
	}
	d.health.worsen()
	d.health.woke = d.ticked + gap
	for _, q := range d.inquiries {
		q.until += gap - step
		if gap > d.period {
			q.until = d.health.woke + q.span
		}
	}
}
