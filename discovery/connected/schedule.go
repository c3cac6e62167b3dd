package connected

import "time"

// A schedule spaces the attempts to be introduced by a supernode: first until one succeeds, afterwards to
// check that a supernode is still connected. A restarted supernode knows no peers, so without these checks
// its newcomers would form a separate network.
type schedule struct {
	least, most time.Duration
	pause       time.Duration // next backoff
	due         time.Time
	running     bool
}

// start reports whether an attempt is due. The caller must then call ended.
func (s *schedule) start(now time.Time) bool {
	if s.running || now.Before(s.due) {
		return false
	}
	s.running = true
	return true
}

// ended records the end of an attempt, and returns the time until the next one. random is in [0,1), so
// that peers do not retry in step.
func (s *schedule) ended(now time.Time, ok bool, random float64) (wait time.Duration) {
	s.running = false
	if ok {
		wait, s.pause = s.most, s.least
	} else {
		wait = s.pause/2 + time.Duration(random*float64(s.pause))
		s.pause = min(2*s.pause, s.most)
	}
	s.due = now.Add(wait)
	return wait
}

// retryNow makes an attempt due at once, or soon after a running one.
func (s *schedule) retryNow() { s.due, s.pause = time.Time{}, s.least }
