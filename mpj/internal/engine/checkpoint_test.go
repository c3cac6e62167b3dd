package engine

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A still protocol does nothing.
type still struct{ protection.Protocol }

func (still) Snapshot() protection.Snapshot { return protection.Snapshot{} }

// TestACheckpointKeepsTheCountOfSteps: who goes on from it does not look behind its master.
func TestACheckpointKeepsTheCountOfSteps(t *testing.T) {
	clock := func() time.Duration { return time.Minute }
	old := &Engine{clock: clock, protocol: still{}}
	for range 7 {
		old.pace.own.step(time.Second)
	}
	s := old.snapshot([]byte("more"))
	young := &Engine{clock: clock, protocol: still{}}
	young.pace.own.step(time.Second)
	young.goTo(&s)
	if got := young.pace.own.appendTo(nil); len(got) != 1 || got[0] != (mark{7, time.Minute}) {
		t.Errorf("history %v, want 7 steps at the time of the restoration", got)
	}
	if got := string(s.Own[ownSize:]); got != "more" {
		t.Errorf("what the program keeps is %q", got)
	}
}
