package peer

import (
	"errors"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/reservation"
)

func TestJobsAreSelectedByIDPrefix(t *testing.T) {
	jobs := []reservation.Name{{Job: "3f2b8c1e77", Submitter: "a"}, {Job: "3f2b9000", Submitter: "a"}, {Job: "77", Submitter: "b"}, {Job: "7777", Submitter: "c"}, {Job: "77", Submitter: "d"}, {Job: "3f2b8c1e77", Submitter: "e"}}
	for prefix, want := range map[string]struct {
		job reservation.Name
		err error
	}{
		"3f2b8c1e77": {jobs[0], nil},
		"3f2b8c1e":   {jobs[0], nil}, // used by two submitters: the one whose job runs here
		"3f2b":       {reservation.Name{}, control.ErrAmbiguous},
		"77":         {jobs[2], nil}, // the full ID, which occurs twice
		"777":        {jobs[3], nil},
		"9":          {reservation.Name{}, control.ErrNotHosted},
		"":           {reservation.Name{}, control.ErrNotHosted},
	} {
		if job, err := selectJob(jobs, prefix); job != want.job || !errors.Is(err, want.err) {
			t.Errorf("%q: got %v, %v; want %v, %v", prefix, job, err, want.job, want.err)
		}
	}
}

// TestLimitsPerSlotShrinkWithMoreSlots checks that more slots get smaller shares of the machine.
func TestLimitsPerSlotShrinkWithMoreSlots(t *testing.T) {
	p := boot(t, func(c *Config) {
		c.Slots = 2
		c.SlotLimits, c.JobLimits = nil, nil
	})
	before := p.launcher.Grant().Slot
	owned{p}.Resize(8)
	more := p.launcher.Grant().Slot
	if before.Memory == 0 || more.Memory > before.Memory/4+1 || more.Disk > before.Disk || more.CPU != before.CPU {
		t.Errorf("with 2 slots each has %+v, with 8 %+v", before, more)
	}
	owned{p}.Resize(1)
	if fewer := p.launcher.Grant().Slot; fewer.Memory != before.Memory {
		t.Errorf("with 2 slots each has %+v, then with 1 %+v", before, fewer)
	}
}
