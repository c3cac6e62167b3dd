package protected

// For each outcome, a rank waits until its other replicas have received the outcome. A silent
// machine holds up the rank until it answers or has failed. So the master reports a long wait, and
// the submitter can set a silent replica aside. A wait is long compared with the usual time of
// outcomes.

const (
	// stallTicks is the number of ticks without a stable outcome, 0.2 s, after which a wait is first
	// reported. Each further report takes twice as many ticks.
	stallTicks = 20
	// usualParts is the least ratio of a reported wait to a usual wait.
	usualParts = 4
)

// A stall measures, for the master of a rank, the waiting time of outcomes. It is a pure value.
type stall struct {
	ticks int // ticks since the last outcome became stable, or since the first began to wait
	limit int // ticks at which the wait is next reported; 0 if not known yet
	usual int // smoothed number of ticks that outcomes take, times 8*usualParts
}

// tick counts a tick in which an outcome waits, and reports whether to report the wait.
func (s *stall) tick() (report bool) {
	if s.limit == 0 {
		s.limit = max(stallTicks, s.usual/8)
	}
	if s.ticks++; s.ticks < s.limit {
		return false
	}
	s.limit *= 2
	return true
}

// end records that an outcome has become stable.
func (s *stall) end() {
	s.usual += (usualParts*8*s.ticks - s.usual) / 8
	s.ticks, s.limit = 0, 0
}
