package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// TestCrowdKeepsPromises runs a quarter of the crowd described in docs/networking.md, with peers that do
// not answer and submitters that are killed.
func TestCrowdKeepsPromises(t *testing.T) {
	skip.Long(t)
	virtualtime.Test(t, func(t *testing.T) {
		o := Crowd{
			Seed: 1, Submitters: 10, Peers: 25, Slots: 2, Demand: 3, Replicas: 2, Run: time.Minute, RTT: 50 * time.Millisecond,
			Silent: 0.08, Dead: 0.08, Crash: 4 * time.Minute, For: 20 * time.Minute, Warmup: time.Minute,
		}.Play()
		for _, v := range o.Violations {
			t.Error(v)
		}
		if o.Leaked != 0 {
			t.Errorf("S4: %d slots are still held", o.Leaked)
		}
		ran := 0
		for _, j := range o.Jobs {
			if j.Ran {
				ran++
			}
		}
		if ran < 10 || ran == len(o.Jobs) {
			t.Errorf("%d of %d jobs ran: want most to run and some to be killed", ran, len(o.Jobs))
		}
	})
}

// TestSchedulerUtilization checks that a single submitter never waits, that a crowd never uses all slots, and
// that schedulers that know the running times use more slots than those that start jobs in order.
func TestSchedulerUtilization(t *testing.T) {
	c := Crowd{Seed: 1, Submitters: 1, Peers: 50, Slots: 2, Demand: 0.25, Replicas: 2, Run: time.Minute, For: 10 * time.Hour, Crash: time.Hour}
	for _, by := range []Scheduler{InOrder, Foreseeing} {
		o := c.Schedule(by)
		waited := slices.ContainsFunc(o.Jobs, func(j JobRecord) bool { return j.Waited > 0 })
		if waited || len(o.Jobs) < 400 || o.Utilisation < 0.2 || o.Utilisation > 0.25 {
			t.Errorf("scheduler %d: %d jobs of one submitter used %.3f of the slots; some waited: %v", by, len(o.Jobs), o.Utilisation, waited)
		}
	}
	c.Submitters, c.Demand, c.Silent = 20, 3, 0.2
	inOrder, foreseeing := c.Schedule(InOrder), c.Schedule(Foreseeing)
	if a, b := inOrder.Utilisation, foreseeing.Utilisation; a < 0.8 || b < a+0.02 || b > 0.99 {
		t.Errorf("scheduler InOrder used %.3f of the slots, scheduler Foreseeing %.3f", a, b)
	}
}

// TestUtilizationWithFewSubmitters checks that six submitters, which want three times 20 slots for jobs that
// start in order, use nearly as many slots as with one central list. Finding free slots takes little time.
func TestUtilizationWithFewSubmitters(t *testing.T) {
	skip.Long(t)
	c := Crowd{
		Seed: 1, Submitters: 6, Peers: 10, Slots: 2, Demand: 3, Replicas: 2, Run: 40 * time.Second, RTT: 50 * time.Millisecond,
		For: 45 * time.Minute, Warmup: 4 * time.Minute,
	}
	virtualtime.Test(t, func(t *testing.T) {
		o, list := c.Play(), c.Schedule(InOrder)
		t.Logf("%.3f used; by one list %.3f, by one that knows lengths %.3f", o.Utilisation, list.Utilisation, c.Schedule(Foreseeing).Utilisation)
		if o.Utilisation < list.Utilisation-0.06 {
			t.Errorf("the submitters used %.3f of the slots; one central list would use %.3f", o.Utilisation, list.Utilisation)
		}
	})
}
