//go:build !race

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
)

// TestChoicesDoNotAllocate checks that calls whose outcome depends on timing allocate no memory in an engine without a
// protocol, except for the indices that they return. The test does not run under the race detector, which allocates.
func TestChoicesDoNotAllocate(t *testing.T) {
	e := engine.New(context.Background(), engine.Config{
		View: view.New(1, 1), Transport: direct.New, Opener: noOpener{}, Clock: func() time.Duration { return time.Second },
	})
	defer e.Close()
	payload, buf := []byte{1}, make([]byte, 1)
	for _, tag := range []int32{1, 2} {
		if err := e.Send(context2, 0, tag, payload, engine.Standard); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(tag int32) *engine.Request {
		r, err := e.Irecv(context2, 0, tag, buf)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	pending, done := receive(3), receive(1)
	none, some, all := []*engine.Request{pending}, []*engine.Request{pending, done}, []*engine.Request{done}
	for name, c := range map[string]struct {
		call  func() (ok bool)
		want  bool
		slice bool // the call returns a new slice
	}{
		"Iprobe finds a message":   {func() bool { _, ok, _ := e.Iprobe(context2, engine.AnySource, 2); return ok }, true, false},
		"Iprobe finds no message":  {func() bool { _, ok, _ := e.Iprobe(context2, engine.AnySource, 9); return ok }, false, false},
		"Probe":                    {func() bool { s, _ := e.Probe(context2, engine.AnySource, 2); return s.Tag == 2 }, true, false},
		"Testany finds a request":  {func() bool { i, _ := e.Testany(some); return i == 1 }, true, false},
		"Testany finds no request": {func() bool { i, _ := e.Testany(none); return i >= 0 }, false, false},
		"Testall":                  {func() bool { ok, _ := e.Testall(all); return ok }, true, false},
		"Waitany":                  {func() bool { i, _ := e.Waitany(some); return i == 1 }, true, false},
		"Testsome":                 {func() bool { is, _ := e.Testsome(none); return len(is) > 0 }, false, false},
		"Waitsome":                 {func() bool { is, _ := e.Waitsome(some); return len(is) == 1 && is[0] == 1 }, true, true},
		"Wtime":                    {func() bool { return e.Wtime() == 1 }, true, false},
		"RandomSeed":               {func() bool { return e.RandomSeed() != 0 }, true, false},
	} {
		allowed := 0.0
		if c.slice {
			allowed = 1
		}
		if n := testing.AllocsPerRun(100, func() {
			if got := c.call(); got != c.want {
				t.Fatalf("%s: got %v", name, got)
			}
		}); n > allowed {
			t.Errorf("%s: %v allocations, want %v", name, n, allowed)
		}
	}
}
