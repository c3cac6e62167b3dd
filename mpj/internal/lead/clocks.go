package lead

import "time"

// clockDrift bounds the relative drift of two clocks: one part in clockDrift.
const clockDrift = 4096

// A comparison is an estimate of the offset between two clocks.
type comparison struct {
	made      bool
	measured  time.Duration // time of the measurement, on the own clock
	roundTrip time.Duration // round-trip time of question and answer
	offset    time.Duration // lead of the other clock
}

// take adds a reading of the other clock, taken between a question and its answer. The reading with
// the shortest round trip is the most exact. Its weight falls with time because clocks drift.
func (c *comparison) take(asked, other, now time.Duration) {
	roundTrip := now - asked
	if c.made && roundTrip > c.roundTrip+(now-c.measured)/clockDrift {
		return
	}
	*c = comparison{true, now, roundTrip, other - (asked + roundTrip/2)}
}

// own converts a time on the other clock to the own clock.
func (c *comparison) own(other time.Duration) time.Duration { return other - c.offset }

// doubt returns the possible error of own.
func (c *comparison) doubt() time.Duration { return c.roundTrip / 2 }
