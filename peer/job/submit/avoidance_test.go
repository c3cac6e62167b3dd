package submit

import (
	"slices"
	"testing"
	"time"
)

// TestAvoidanceBackoff: a peer that failed once is asked again within seconds, since it may have
// been restarted. A peer that fails each time is asked less and less often, but never given up.
func TestAvoidanceBackoff(t *testing.T) {
	a, now := make(avoidance), time.Unix(0, 0)
	if a.Avoids("x", now) {
		t.Error("a peer that did not fail is avoided")
	}
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 32, 32, 32, 32, 32, 32} {
		a.Failed("x", now)
		end := now.Add(want * time.Second)
		if !a.Avoids("x", end.Add(-1)) || a.Avoids("x", end) {
			t.Errorf("after %d failures it is not avoided for %d s", i+1, want)
		}
		if a.Avoids("y", now) {
			t.Error("another peer is avoided")
		}
		now = end
	}
}

// TestV4LyingPeerIsAvoidedPermanently: a peer that lied never gets another process of the job.
func TestV4LyingPeerIsAvoidedPermanently(t *testing.T) {
	a, now := make(avoidance), time.Unix(0, 0)
	a.Distrust("x")
	a.Failed("x", now)
	if !a.Avoids("x", now.Add(24*time.Hour)) {
		t.Error("a peer that lied is not avoided any more")
	}
	if a.Avoids("y", now) {
		t.Error("another peer is avoided")
	}
}

// TestReasonsForAMissingReplicaAreReportedOnce: the user sees each reason why a rank still lacks a
// replica once.
func TestReasonsForAMissingReplicaAreReportedOnce(t *testing.T) {
	e := newHearing(t)
	var texts []string
	e.j.events.finish()
	e.j.events = Showing(func(ev Event) error { texts = append(texts, ev.Text); return nil })
	e.recruitment.healing = newHealing(2)
	for _, err := range []error{errNoOther, errNoOther, errSilent, errNoOther} {
		e.recruitment.healing.Observe(1, true, 0)
		e.recruitment.healing.Serve(1)
		e.recruitment.handleFound(finding{rank: 1, err: err})
	}
	e.j.events.finish()
	if want := []string{
		"rank 1 still lacks a replica: no free slot on a peer that does not run it already; the search goes on",
		"rank 1 still lacks a replica: no peer that is asked grants a slot; the search goes on",
	}; !slices.Equal(texts, want) {
		t.Errorf("told %q, want %q", texts, want)
	}
}
