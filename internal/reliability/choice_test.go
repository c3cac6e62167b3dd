package reliability

import (
	"math"
	"testing"
	"time"
)

func TestReplicasReturnsTheMinimum(t *testing.T) {
	tests := []struct {
		name       string
		n          int
		f, success float64
		most, want int
		ok         bool
	}{
		// n=8, f=0.05: r=1 fails with 0.337, r=2 with 0.0198, r=3 with 0.0010.
		{"one suffices", 8, 0.05, 0.66, 9, 1, true},
		{"one just misses the target", 8, 0.05, 0.67, 9, 2, true},
		{"two suffice", 8, 0.05, 0.98, 9, 2, true},
		{"two do not suffice, although the slides say 0.01", 8, 0.05, 0.985, 9, 3, true},
		{"n=50: two fail with 0.118", 50, 0.05, 0.88, 9, 2, true},
		{"n=50: two just miss the target", 50, 0.05, 0.89, 9, 3, true},
		{"n=100: two fail with 0.221", 100, 0.05, 0.77, 9, 2, true},
		{"processes that never fail", 100, 0, 0.9999, 9, 1, true},
		{"processes that always fail", 1, 1, 0.5, 9, 9, false},
		{"more than the maximum", 8, 0.05, 0.99, 2, 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, ok := Replicas(tt.n, tt.f, tt.success, tt.most); r != tt.want || ok != tt.ok {
				t.Errorf("got %d %v, want %d %v", r, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestHistoryFails(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name   string
		h      History
		within time.Duration
		want   float64
	}{
		{"no history, for a day", History{}, day, 1 - math.Exp(-1)},
		{"no history, for an hour", History{}, time.Hour, 1 - math.Exp(-1./24)},
		{"a month without an end", History{Up: 30 * day}, day, 1 - math.Exp(-1./31)},
		{"ten ends in nine days", History{Up: 9 * day, Ends: 9}, day, 1 - math.Exp(-1)},
		{"a boaster", History{Up: math.MaxInt64}, day, 1 - math.Exp(-1./100)},
		{"the greatest number of ends that a peer can claim", History{Ends: math.MaxInt}, time.Minute, 1 - math.Exp(-1001./1440)},
		{"nonsense", History{Up: -day, Ends: -5}, day, 1 - math.Exp(-1)},
		{"no time", History{}, 0, 0},
		{"negative time", History{}, -day, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.h.Fails(tt.within); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("got %g, want %g", got, tt.want)
			}
		})
	}
}
