package protected

import (
	"context"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A still is a protocol that does nothing.
type still struct{ protection.Protocol }

func (still) Joining() bool { return false }

func (still) Decider() bool { return false }

func (still) Snapshot() protection.Snapshot { return protection.Snapshot{} }

func (still) Tick() protection.Output { return protection.Output{} }

func (still) Waiting() bool { return false }

// newStill returns the transport of an engine that has ended.
func newStill(t testing.TB, v view.View) *transport {
	t.Helper()
	e := engine.New(context.Background(), engine.Config{
		View: v, Clock: func() time.Duration { return time.Minute }, Transport: New(Config{Protocol: still{}}),
	})
	e.Close()
	return e.Transport().(*transport)
}

// TestCheckpointKeepsCounts checks that a process that resumes from a checkpoint keeps the step
// count and the tallies of the checkpoint. Otherwise the process would seem to be behind its master
// or to have received less.
func TestCheckpointKeepsCounts(t *testing.T) {
	old := newStill(t, view.New(2, 1))
	old.windows.byRank[1] = window{sent: tally{1, 2}, received: tally{3, 4}}
	for range 7 {
		old.leading.meter.Step(time.Second)
	}
	s := old.checkpointing.snapshot([]byte("more"))
	young := newStill(t, view.New(2, 1))
	young.leading.meter.Step(time.Second)
	young.checkpointing.goTo(&s)
	if got := young.leading.meter.Steps(); got != 7 {
		t.Errorf("the process has taken %d steps, want 7", got)
	}
	if got, want := young.windows.byRank[1], old.windows.byRank[1]; got.sent != want.sent || got.received != want.received {
		t.Errorf("the process has sent %v and received %v, want %v and %v", got.sent, got.received, want.sent, want.received)
	}
	if got := string(s.Own[old.checkpointing.ownSize():]); got != "more" {
		t.Errorf("the program's state is %q", got)
	}
}
