package peer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

func TestGranted(t *testing.T) {
	g := Granted{Grant: limits.Grant{
		Slot: limits.Limits{Memory: 512 << 20, CPU: 50, Files: 100, Time: time.Hour},
		Job:  limits.Limits{Upload: 1 << 20},
	}}
	slot, job := g.Slot.Each(), g.Job.Each()
	if want := []string{"memory 512 MiB", "cpu 50 % of a processor", "files 100", "time 1h0m0s"}; !slices.Equal(slot, want) {
		t.Errorf("got %q, want %q", slot, want)
	}
	if want := []string{"upload 1.0 MiB/s"}; !slices.Equal(job, want) {
		t.Errorf("got %q, want %q", job, want)
	}
	if got := checkGranted(nil); got != nil {
		t.Errorf("where no peer runs: %v", got)
	}
	if got := checkGranted(&g); len(got) != 1 || got[0].Level != Well {
		t.Errorf("where all hold: %v", got)
	}
	g.Unheld = []launch.Unenforced{{Limit: limits.CPU, Why: "no such controller", Instead: "programs have a low priority"}}
	got := checkGranted(&g)
	if len(got) != 1 || got[0].Level != Warning || !strings.Contains(got[0].Found, "no such controller; instead, programs") || !strings.Contains(got[0].Do, "Delegate=yes") {
		t.Errorf("where one does not: %v", got)
	}
}

// TestLocalPeersHaveNoLimits checks that local peers, which run their user's own programs, have no limits.
func TestLocalPeersHaveNoLimits(t *testing.T) {
	for want, c := range map[bool]Config{true: LocalConfig(), false: DefaultConfig()} {
		g, err := c.grant(t.TempDir(), c.Slots)
		if err != nil || (g == limits.Grant{}) != want {
			t.Errorf("got %+v, %v", g, err)
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
	p.resize(8)
	more := p.launcher.Grant().Slot
	if before.Memory == 0 || more.Memory > before.Memory/4+1 || more.Disk > before.Disk || more.CPU != before.CPU {
		t.Errorf("with 2 slots each has %+v, with 8 %+v", before, more)
	}
	p.resize(1)
	if fewer := p.launcher.Grant().Slot; fewer.Memory != before.Memory {
		t.Errorf("with 2 slots each has %+v, then with 1 %+v", before, fewer)
	}
}
