package engine

// A rank waits for each outcome until its other replicas have it. One whose machine has fallen silent
// holds it up until the machine has failed or answers, so the master says when it waits for long: the
// submitter can set a silent replica aside. How long is long depends on how long outcomes take here.

const (
	// stallTicks is for how many ticks no outcome has become stable, although one waits, when that is
	// first said: 0.2 s. It is said again after twice as many, and so on.
	stallTicks = 20
	// usualParts is how many times longer than usual that is at least.
	usualParts = 4
)

// A stall is what the master of a rank knows of how long outcomes wait. It is a pure value.
type stall struct {
	ticks int // since the last outcome became stable, or the first began to wait
	limit int // of ticks, at which it is said next; 0: not known yet
	usual int // ticks that outcomes take, smoothed, times 8*usualParts
}

// tick lets a tick pass in which an outcome waits, and reports whether to say so.
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

// end says that an outcome has become stable.
func (s *stall) end() {
	s.usual += (usualParts*8*s.ticks - s.usual) / 8
	s.ticks, s.limit = 0, 0
}

// reviewStall says that the rank waits for an outcome, if it has waited for long. e.mu is held.
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
