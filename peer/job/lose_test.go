package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestExitOfAnUnneededReplicaIsNotReported: the end of a new replica is reported as an exit of the
// program only if its rank is not done.
func TestExitOfAnUnneededReplicaIsNotReported(t *testing.T) {
	for _, done := range []bool{false, true} {
		w := running(t, 2, 2)
		w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
		w.Apply(Recruited{Process: proc(0, 2)})
		var s Effects
		if done {
			s = finish(w, proc(0, 0))
		}
		s.Notes = append(s.Notes, w.Apply(Exited{Process: proc(0, 2), Exit: Exit{Code: 1, Initialized: true}}).Notes...)
		want := map[bool]string{false: "rank 0 replica 2 exited with status 1", true: "rank 0 replica 2 had yet to be brought up to date when its rank was done"}[done]
		if !slices.Contains(s.Notes, want) {
			t.Errorf("rank done %v: the user was told %q, want %q", done, s.Notes, want)
		}
	}
}

// TestExitOfAnUnneededReplicaIsNotReportedAfterReconnect: a submitter that has reconnected
// may read the exit of a new replica before the agreed changes by which the others of its rank had
// finished.
func TestExitOfAnUnneededReplicaIsNotReportedAfterReconnect(t *testing.T) {
	w := running(t, 2, 2)
	w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
	w.Apply(Recruited{Process: proc(0, 2)})
	w.State.Apply(Exited{Process: proc(0, 2), Exit: Exit{Code: 1, Initialized: true}})
	w.State.Apply(Committed{Change: view.Change{Process: proc(0, 0), To: view.Finished}})
	s := w.State.Apply(Committed{Change: view.Change{Process: proc(0, 2), To: view.Failed}})
	if want := "rank 0 replica 2 had yet to be brought up to date when its rank was done"; !slices.Contains(s.Notes, want) {
		t.Errorf("the user was told %q, want %q", s.Notes, want)
	}
}

// TestR7ExitOfARecruitThatCannotCatchUpIsNotTheProgramsStatus: a new replica ends by itself if no other replica is left
// to bring it up to date.
func TestR7ExitOfARecruitThatCannotCatchUpIsNotTheProgramsStatus(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
	w.Apply(Recruited{Process: proc(0, 2)})
	w.Apply(Exited{Process: proc(0, 2), Exit: Exit{Code: 1, Initialized: true}})
	s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost"})
	if s.Result == nil || s.Result.Status != StatusLost || !strings.Contains(s.Result.Message, "rank 0 lost all its replicas") {
		t.Errorf("got %+v, want status %d and a message that names rank 0", s.Result, StatusLost)
	}
}

// TestV4ConcealedEndDoesNotKeepANewReplicaLive: replica 1 has finished, and its peer does not report that. So replica 3
// gets no more of its rank's messages, and the other ranks would wait for it.
func TestV4ConcealedEndDoesNotKeepANewReplicaLive(t *testing.T) {
	w := running(t, 2, 3)
	w.Apply(Lost{Processes: []view.Process{proc(0, 2)}, Why: "is lost"})
	w.Apply(Recruited{Process: proc(0, 3)})
	if got := w.State.View().State(proc(0, 3)); got != view.Live {
		t.Fatalf("the new replica is %v, want live", got)
	}
	finish(w, proc(0, 0))
	if got := w.State.View().State(proc(0, 3)); got != view.Failed {
		t.Errorf("a new replica of a rank that is done is %v, want failed", got)
	}
	if got := w.State.View().State(proc(0, 1)); got != view.Live {
		t.Errorf("replica 1 is %v, want live", got)
	}
}
