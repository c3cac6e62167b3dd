package engine

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A silentRing is always empty.
type silentRing struct{ looks int }

func (r *silentRing) Ready() bool   { r.looks++; return false }
func (r *silentRing) Arrived() bool { return r.Ready() }
func (r *silentRing) TryReceive(func(frame.Header) []byte) (f frame.Frame, ok bool, err error) {
	return f, false, nil
}

// TestSpinStopsYieldingAfterASlowYield checks that a wait whose yields last for time slices of other
// programs sleeps instead of yielding.
func TestSpinStopsYieldingAfterASlowYield(t *testing.T) {
	for _, tt := range []struct{ slowAt, yields int }{{1, 1}, {3, 3}, {99, yieldLooks}} {
		ring, yields := new(silentRing), 0
		found := look([]*inlet{{ring: ring}}, nil, new(Waiter), yieldLooks, func() bool {
			yields++
			return yields < tt.slowAt
		})
		if found || yields != tt.yields || ring.looks != tt.yields {
			t.Errorf("slow yield %d: found %v, %d yields, %d looks", tt.slowAt, found, yields, ring.looks)
		}
	}
}
