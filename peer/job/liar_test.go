package job

import (
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestV4LateExitReportCounts: the view group agrees that a process has finished
// before its peer reports the exit, as when the peer reconnects late. The peer is not blamed, and
// the rank is done.
func TestV4LateExitReportCounts(t *testing.T) {
	w := running(t, 1, 2)
	p := proc(0, 0)
	w.State.Apply(Committed{Change: view.Change{Process: p, To: view.Finished}})
	if !w.Silent(p) {
		t.Error("the exit counts as reported before the report")
	}
	w.Apply(Exited{Process: p, Exit: wellEnded})
	if w.Silent(p) {
		t.Error("the exit counts as missing after the report")
	}
	if s := w.Apply(Drained{Process: p}); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("the job ends with %+v", s.Result)
	}
}

// TestV4FailureNoticeNamesItsSource checks that a failure notice names its source.
func TestV4FailureNoticeNamesItsSource(t *testing.T) {
	w := NewState(1, 3)
	p := proc(0, 1)
	w.Apply(Accused{Process: p, Why: "failed, say the peers A, B"})
	s := w.Apply(Committed{Change: view.Change{Process: p, To: view.Failed}})
	if len(s.Notes) != 1 || s.Notes[0] != "rank 0 replica 1 failed, say the peers A, B" {
		t.Errorf("notes %q", s.Notes)
	}
}

// TestV4AbortOfOneReplicaIsNotDecisive: a replica becomes the master and calls Abort. The job ends
// with its status only if the other replicas of its rank do the same.
func TestV4AbortOfOneReplicaIsNotDecisive(t *testing.T) {
	killed := Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true}
	aborts := func(w immediate, p view.Process, code int) Effects {
		w.Apply(Aborted{Process: p, Code: code, Reason: "no food", Host: hostOf(p)})
		w.Apply(Exited{Process: p, Exit: killed})
		return w.Apply(Drained{Process: p})
	}
	t.Run("the others finish", func(t *testing.T) {
		w := running(t, 1, 2)
		if s := aborts(w, proc(0, 0), 7); s.Result != nil {
			t.Fatalf("the Abort of one replica ended the job: %+v", s.Result)
		}
		if m, _ := w.View().Master(0); m != proc(0, 1) || w.Lacks(0) {
			t.Errorf("master %v, lacks a replica: %v", m, w.Lacks(0))
		}
		s := finish(w, proc(0, 1))
		if s.Result == nil || s.Result.Status != StatusDiverged || !strings.Contains(s.Result.Message, "replica 0 on peer P0.0") {
			t.Errorf("got %+v, want a divergence that names the peer of replica 0", s.Result)
		}
	})
	t.Run("most finish", func(t *testing.T) {
		w := running(t, 1, 3)
		aborts(w, proc(0, 0), 7)
		if s := finish(w, proc(0, 1)); s.Result == nil || s.Result.Status != StatusOK {
			t.Errorf("got %+v, want status 0: two of three continue", s.Result)
		}
	})
	t.Run("most finish, but are not agreed on yet", func(t *testing.T) {
		w := running(t, 1, 3)
		w.Apply(Aborted{Process: proc(0, 0), Code: 7, Reason: "no food", Host: hostOf(proc(0, 0))})
		asked := append(w.State.Apply(Exited{Process: proc(0, 1), Exit: wellEnded}).Propose, w.State.Apply(Exited{Process: proc(0, 2), Exit: wellEnded}).Propose...)
		if s := w.Apply(Drained{Process: proc(0, 0)}); s.Result != nil {
			t.Fatalf("the Abort of one replica ended the job: %+v", s.Result)
		}
		w.agree(Effects{Propose: asked})
		if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != StatusOK {
			t.Errorf("got %+v, want status 0: two of three have finished", s.Result)
		}
	})
	t.Run("the others abort", func(t *testing.T) {
		w := running(t, 1, 2)
		aborts(w, proc(0, 0), 7)
		if s := aborts(w, proc(0, 1), 7); s.Result == nil || s.Result.Status != 7 {
			t.Errorf("got %+v, want status 7", s.Result)
		}
	})
	t.Run("the others abort with another status", func(t *testing.T) {
		w := running(t, 1, 2)
		aborts(w, proc(0, 0), 7)
		if s := aborts(w, proc(0, 1), 8); s.Result == nil || s.Result.Status != StatusDiverged {
			t.Errorf("got %+v, want a divergence", s.Result)
		}
	})
	t.Run("the others are lost", func(t *testing.T) {
		w := running(t, 1, 2)
		w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
		if s := aborts(w, proc(0, 0), 7); s.Result == nil || s.Result.Status != 7 {
			t.Errorf("got %+v, want status 7", s.Result)
		}
	})
}
