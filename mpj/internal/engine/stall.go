package engine

// A rank waits for each outcome until its other replicas have it. A silent machine holds up the rank until it
// has failed or answers, so the master reports a long wait: the submitter can set a silent replica aside. Which
// wait is long depends on how long outcomes take here.

const (
	// stallTicks is the number of ticks without a stable outcome, 0.2 s, after which a wait for one is first
	// reported. It is reported again after twice as many, and so on.
	stallTicks = 20
	// usualParts is the least ratio of a reported wait to a usual one.
	usualParts = 4
)

// A stall measures, for the master of a rank, how long outcomes wait. It is a pure value.
type stall struct {
	ticks int // since the last outcome became stable, or the first began to wait
	limit int // ticks after which the wait is next reported; 0: not known yet
	usual int // smoothed ticks that outcomes take, times 8*usualParts
}

// tick counts a tick in which an outcome waits, and reports whether to report the wait.
func (s *stall) tick() (say bool) {
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

// reviewStall reports that the rank waits for an outcome, if it has waited for long. e.mu is held.
func (e *Engine) reviewStall() {
	switch {
	case !e.protocol.Waiting():
		e.stall.ticks, e.stall.limit = 0, 0
	case e.stall.tick() && e.onStall != nil:
		e.running.Go(e.onStall)
		fallthrough
	default:
		e.armTick()
	}
}
