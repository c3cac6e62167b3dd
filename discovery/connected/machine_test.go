package connected

import (
	"testing"
	"time"
)

func TestMoveDetector(t *testing.T) {
	var l moveDetector
	one, other := []string{"eth0 192.0.2.1/24"}, []string{"eth0 192.0.2.2/24"}
	for _, step := range []struct {
		name   string
		after  time.Duration
		usable []string
		want   string
	}{
		{"the first check", 0, one, ""},
		{"no change", 5 * time.Second, one, ""},
		{"a late check", 14 * time.Second, one, ""},
		{"a new address", 20 * time.Second, other, "its addresses have changed"},
		{"the link is lost", 25 * time.Second, nil, "its addresses have changed"},
		{"the link is back", 30 * time.Second, other, "its addresses have changed"},
		{"a night of sleep", 8 * time.Hour, other, "it was asleep"},
		{"a clock that is set back", 7 * time.Hour, other, ""},
		{"the clock continues", 7*time.Hour + 5*time.Second, other, ""},
	} {
		if got := l.observe(testNow.Add(step.after), step.usable); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}
