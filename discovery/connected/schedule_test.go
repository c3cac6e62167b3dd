package connected

import (
	"testing"
	"time"
)

// TestSchedule: failed attempts follow each other at growing intervals, one at a time. After a move, the next
// attempt is due at once.
func TestSchedule(t *testing.T) {
	const least, most = time.Second, 8 * time.Second
	s, now := schedule{least: least, most: most, pause: least}, testNow
	random := 0.0
	attempt := func(ok bool) time.Duration {
		t.Helper()
		if !s.start(now) || s.start(now) {
			t.Fatal("a try was not due, or was due twice")
		}
		wait := s.ended(now, ok, random)
		if s.start(now.Add(wait - 1)) {
			t.Fatal("the next try was due too early")
		}
		now = now.Add(wait)
		return wait
	}
	for _, pause := range []time.Duration{least, 2 * least, 4 * least, most, most} {
		if wait := attempt(false); wait != pause/2+time.Duration(random*float64(pause)) {
			t.Errorf("the wait after a failure is %v, want %[2]v/2 + %[3]v*%[2]v", wait, pause, random)
		}
		random += 0.2
	}
	random = 0.99
	if wait := attempt(true); wait != most {
		t.Errorf("the wait after a success is %v, want %v", wait, most)
	}
	attempt(false)
	now = testNow // long before the next attempt
	s.retryNow()
	if wait := attempt(false); wait >= 3*least/2 {
		t.Errorf("the wait after a move is %v, want about %v", wait, least)
	}
}
