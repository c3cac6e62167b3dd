package status

import (
	"slices"
	"testing"
	"time"

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
}
