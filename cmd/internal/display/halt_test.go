package display

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

func TestHaltMessages(t *testing.T) {
	got := Fates(status.Halting{Jobs: []status.JobFate{
		{Job: "0123456789abcdef", Program: "ep", Processes: []view.Process{{Rank: 1}, {Rank: 3, Replica: 1}}, Fate: status.HandedOver},
		{Job: "fedcba9876543210", Program: "a\nb", Fate: status.Cancelled},
	}})
	const want = "job 01234567 ep, 1.0 3.1: handed over\njob fedcba98 a?b, submitted from here: cancelled\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
