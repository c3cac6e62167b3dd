package lead

import (
	"math"
	"time"
)

const (
	// maxSpell is the maximum contribution of one spell.
	maxSpell = 10 * time.Millisecond
	// recently is the decay time of spells, in seconds: within it, the weight of a spell falls to
	// 1/e.
	recently = 1.5
)

// spells accumulates the lengths of spells. A spell is a time for which one process was ahead, until
// the two were level again. It counts as negative if the master was ahead.
//
//	replica   |...|      |..|    |..|        +3 +2 +2 -1 = 6
//	level         |......|  |.|..|  |..|
//	master                    ||             √(9+4+4+1) = 4.2: so clear, 1.4
//
// The measure is the sum divided by the root of the sum of squares. It does not depend on the
// distribution of the lengths. If each spell belongs to either process with equal probability, the
// measure exceeds z with a probability below exp(-z²/2), whatever the lengths (Efron, Student's
// t-test under symmetry conditions, 1969). The measure of a single spell is 1. No spell counts for
// more than maxSpell, so that a long pause does not hide the other spells for long.
type spells struct {
	now          time.Duration // the current spell; negative if the master is ahead
	sum, squares float64       // sums over the completed spells, in seconds
}

// take records that leader was ahead next, for the time lasts.
func (s *spells) take(leader int, lasts time.Duration) {
	if leader == level || (s.now < 0) != (leader == masterAhead) {
		x := max(-maxSpell, min(maxSpell, s.now)).Seconds()
		s.sum, s.squares, s.now = s.sum+x, s.squares+x*x, 0
	}
	s.now += time.Duration(leader) * lasts
}

// fade reduces the weight of past spells after the time passed.
func (s *spells) fade(passed time.Duration) {
	part := math.Exp(-passed.Seconds() / recently)
	s.sum, s.squares = part*s.sum, part*s.squares
}

// clear reports whether the replica is ahead and the square of the measure is at least square.
func (s *spells) clear(square float64) bool {
	return s.sum > 0 && s.sum*s.sum >= square*s.squares
}
