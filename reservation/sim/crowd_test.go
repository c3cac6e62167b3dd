package sim

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCrowdKeepsPromises is a quarter of the crowd that docs/networking.md tells of,
// with peers that do not answer and submitters that are killed.
func TestCrowdKeepsPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Crowd{
			Seed: 1, Submitters: 10, Peers: 25, Slots: 2, Demand: 3, Replicas: 2, Run: time.Minute, RTT: 50 * time.Millisecond,
			Silent: 0.08, Dead: 0.08, Crash: 4 * time.Minute, For: 20 * time.Minute, Warmup: time.Minute,
		}.Play()
		for _, v := range o.Violations {
			t.Error(v)
		}
		if o.Leaked != 0 {
			t.Errorf("S4: %d slots are still somebody's", o.Leaked)
		}
		ran := 0
		for _, j := range o.Jobs {
			if j.Ran {
				ran++
			}
		}
		if ran < 10 || ran == len(o.Jobs) {
			t.Errorf("%d of %d jobs ran: want some killed, and many not", ran, len(o.Jobs))
		}
	})
}
