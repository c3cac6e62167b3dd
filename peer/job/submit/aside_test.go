package submit

import (
	"testing"
	"time"
)

// TestSilentPeerIsSetAside checks when the processes of a peer are set aside: once in each
// suspicion, at growing intervals.
func TestSilentPeerIsSetAside(t *testing.T) {
	var u suspicion
	if u.isLong(0) {
		t.Error("a peer that answers is unheard for long")
	}
	silentFor := func(d time.Duration) { u.since.Store(time.Now().Add(-d).UnixNano()) }
	silentFor(time.Hour)
	if u.trip.Store(int64(time.Hour)); u.isLong(time.Second) {
		t.Error("a peer whose answer may be under way is unheard for long")
	}
	if u.trip.Store(0); !u.isLong(time.Second) {
		t.Error("a peer that has been silent for an hour is not unheard for long")
	}
	begun := time.Now()
	for i, c := range []struct {
		suspicion int64
		is        bool // is set aside
		at        time.Duration
		want      bool
	}{
		{1, false, 0, true},
		{1, true, time.Second, false},
		{1, false, time.Second, true}, // another process of the peer
		{2, false, asideRest - 1, false},
		{2, false, asideRest, true},
		{3, true, 3*asideRest - 1, false},
		{3, true, 3 * asideRest, true}, // it answered for a moment, and is silent again
		{4, true, 6*asideRest - 1, false},
		{5, true, 6 * asideRest, true},
	} {
		u.since.Store(c.suspicion)
		if got := u.setAside(c.is, begun.Add(c.at)); got != c.want {
			t.Errorf("case %d: %v, want %v", i, got, c.want)
		}
	}
}
