package job

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestLacks(t *testing.T) {
	killed := Exit{Code: -1, Signal: "killed", Initialized: true}
	overLimit := Exit{Code: -1, Signal: "killed", Initialized: true, Reason: "exceeded the limit", Limit: "memory"}
	cases := map[string]struct {
		do   func(immediate)
		want bool
	}{
		"nothing has happened":      {func(immediate) {}, false},
		"a replica is lost":         {func(w immediate) { w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"}) }, true},
		"a replica is killed":       {func(w immediate) { w.Apply(Exited{Process: proc(0, 1), Exit: killed}) }, true},
		"a replica ends by itself":  {func(w immediate) { w.Apply(Exited{Process: proc(0, 1), Exit: Exit{Code: 3, Initialized: true}}) }, false},
		"a replica exceeds a limit": {func(w immediate) { w.Apply(Exited{Process: proc(0, 1), Exit: overLimit}) }, false},
		"one has joined and then exceeds a limit": {func(w immediate) {
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
			w.Apply(Recruited{Process: proc(0, 2)})
			w.Apply(Exited{Process: proc(0, 2), Exit: overLimit})
		}, false},
		"all replicas are lost":  {func(w immediate) { w.Apply(Lost{Processes: []view.Process{proc(0, 0), proc(0, 1)}, Why: "is lost"}) }, false},
		"another rank lacks one": {func(w immediate) { w.Apply(Lost{Processes: []view.Process{proc(1, 0)}, Why: "is lost"}) }, false},
		"one is done, one is lost": {func(w immediate) {
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
			w.Apply(Exited{Process: proc(0, 0), Exit: wellEnded})
		}, false},
		"the master keeps no messages": {func(w immediate) {
			w.Apply(Unkept{Process: proc(0, 0), Why: "disk full"})
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
		}, false},
		"another replica keeps no messages": {func(w immediate) {
			w.Apply(Unkept{Process: proc(0, 1), Why: "disk full"})
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
		}, true},
		"the master keeps no messages until its next checkpoint": {func(w immediate) {
			w.Apply(Lapsed{Process: proc(0, 0), Why: "too long"})
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
		}, true},
		"one has joined and then ended": {func(w immediate) {
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
			w.Apply(Recruited{Process: proc(0, 2)})
			w.Apply(Exited{Process: proc(0, 2), Exit: Exit{Code: 1, Initialized: true}})
		}, true},
		"one has joined": {func(w immediate) {
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
			w.Apply(Recruited{Process: proc(0, 2)})
		}, true},
		"one has joined and caught up": {func(w immediate) {
			w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
			w.Apply(Recruited{Process: proc(0, 2)})
			w.Apply(Healed{Process: proc(0, 2)})
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, 2, 2)
			c.do(w)
			if got := w.Lacks(0); got != c.want {
				t.Errorf("lacks a replica: %v, want %v", got, c.want)
			}
		})
	}
	if w := newImmediate(1, 2); w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"}).View == nil || w.Lacks(0) {
		t.Error("a rank lacks a replica before the job begins")
	}
}

func TestLapsedLogIsReportedOncePerRank(t *testing.T) {
	w := NewState(2, 2)
	for _, tt := range []struct {
		p    view.Process
		want int
	}{{proc(0, 0), 1}, {proc(0, 1), 0}, {proc(0, 0), 0}, {proc(1, 1), 1}} {
		if s := w.Apply(Lapsed{Process: tt.p, Why: "too long"}); len(s.Notes) != tt.want {
			t.Errorf("%v: notes %q, want %d", tt.p, s.Notes, tt.want)
		}
	}
}
