package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func proc(rank, replica int) view.Process { return view.Process{Rank: rank, Replica: replica} }

var wellEnded = Exit{Initialized: true, Finalized: true}

// An immediate is a State whose requested changes take effect at once, as in a job without a view
// group.
type immediate struct{ *State }

func newImmediate(n, r int) immediate { return immediate{NewState(n, r)} }

// agree commits the changes that s and the following effects request. The result's View is the last
// view.
func (w immediate) agree(s Effects) Effects {
	for _, c := range s.Propose {
		next := w.Apply(Committed{Change: c})
		if next.View != nil {
			s.View = next.View
		}
		if s.Result == nil {
			s.Result = next.Result
		}
		s.Begin = s.Begin || next.Begin
		s.Notes = append(s.Notes, next.Notes...)
	}
	s.Propose = nil
	return s
}

// Apply applies e and commits all changes that follow from it.
func (w immediate) Apply(e Event) Effects { return w.agree(w.State.Apply(e)) }

// running returns the State of a job in which every process has left mpj.Init.
func running(t *testing.T, n, r int) immediate {
	t.Helper()
	w := newImmediate(n, r)
	ps := w.View().Processes()
	for i, p := range ps {
		if s := w.Apply(Initialized{Process: p}); s.Begin != (i == len(ps)-1) {
			t.Fatalf("begin after %d of %d processes", i+1, len(ps))
		}
	}
	return w
}

// finish makes p end successfully, with all its output shown.
func finish(w immediate, p view.Process) Effects {
	w.Apply(Exited{Process: p, Exit: wellEnded})
	return w.Apply(Drained{Process: p})
}

func TestJobIsDoneWhenEachRankHasOneFinishedReplica(t *testing.T) {
	w := running(t, 2, 2)
	if s := finish(w, proc(0, 0)); s.Result != nil {
		t.Fatalf("over after one rank: %+v", s.Result)
	}
	if s := finish(w, proc(1, 0)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("not over with both ranks done: %+v", s.Result)
	}
}

func TestV1EachChangeHasItsOwnEpoch(t *testing.T) {
	w := running(t, 2, 2)
	s := w.Apply(Lost{Processes: []view.Process{proc(0, 0), proc(1, 1)}, Why: "is lost"})
	if s.View == nil || s.View.Epoch != 3 {
		t.Fatalf("two failures gave view %+v, want epoch 3", s.View)
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost again"}); s.View != nil {
		t.Errorf("a process failed twice: %+v", s.View)
	}
}

func TestR6OutputOfAProcessThatExitedIsAwaited(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Apply(Exited{Process: proc(0, 0), Exit: Exit{Code: 3, Initialized: true}}); s.View != nil {
		t.Fatal("the output leader was judged before the user had its output")
	}
	s := w.Apply(Drained{Process: proc(0, 0)})
	if s.View == nil || w.View().State(proc(0, 0)) != view.Failed {
		t.Errorf("not judged after the user had its output: %+v", s)
	}
}

func TestMostAdvancedReplicaBecomesMaster(t *testing.T) {
	w := newImmediate(1, 3)
	if s := w.Apply(Ahead{Process: proc(0, 1)}); s.View != nil {
		t.Fatal("0.1 became master before the job had begun")
	}
	w = running(t, 1, 3)
	s := w.Apply(Ahead{Process: proc(0, 1)})
	if s.View == nil || !s.View.IsMaster(proc(0, 1)) || !s.View.Live(proc(0, 0)) || len(s.Notes) != 0 {
		t.Fatalf("got %+v, want 0.1 as master, and no note to the user", s)
	}
	w.Apply(Exited{Process: proc(0, 2), Exit: Exit{Code: 3, Initialized: true}})
	for _, p := range []view.Process{proc(0, 1), proc(0, 2), proc(0, 3), proc(1, 0)} {
		if s := w.Apply(Ahead{Process: p}); s.View != nil {
			t.Errorf("%v became master: %+v", p, s.View)
		}
	}
}

func TestMastershipChangesAreBounded(t *testing.T) {
	w := running(t, 1, 2)
	for range 2 * maxMoves {
		w.Apply(Ahead{Process: proc(0, 0)})
		w.Apply(Ahead{Process: proc(0, 1)})
	}
	if e := w.View().Epoch; e != 1+maxMoves {
		t.Errorf("epoch %d, want an epoch for each of %d new masters", e, maxMoves)
	}
}

func TestR6OutputOfAKilledMasterIsNotAwaitedOnceReplaced(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Exited{Process: proc(0, 0), Exit: Exit{Code: -1, Signal: "killed", Initialized: true}})
	if s := w.Apply(Ahead{Process: proc(0, 1)}); s.View == nil || s.View.State(proc(0, 0)) != view.Failed || s.Result != nil {
		t.Errorf("got %+v, want 0.0 failed", s)
	}
}

func TestFirstFinishedReplicaIsOutputLeader(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded}); s.Result != nil || !w.View().IsOutputLeader(proc(0, 1)) {
		t.Fatalf("%+v with view %+v: want 0.1 as output leader", s.Result, w.View())
	}
	if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("%+v: the job waits for the slower replica", s.Result)
	}
}

func TestR6OutputOfAKilledLeaderIsNotAwaitedOnceAnotherFinished(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Exited{Process: proc(0, 0), Exit: Exit{Code: -1, Signal: "killed", Initialized: true}})
	if !w.View().Live(proc(0, 0)) {
		t.Fatal("the output leader was judged before the user had its output")
	}
	w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded})
	if got := w.View().State(proc(0, 0)); got != view.Failed {
		t.Errorf("0.0 is %v: other processes wait for its acknowledgements", got)
	}
}

func TestR6FinishedLeaderIsReplacedIfItsPeerIsLostBeforeItsOutput(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded}) // not the output leader: judged at once
	if got := w.View().State(proc(0, 1)); got != view.Finished {
		t.Fatalf("0.1 is %v, want finished", got)
	}
	s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost"})
	if s.Result != nil {
		t.Fatalf("the job is over before the user has the output of 0.1: %+v", s.Result)
	}
	if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("the job is not over: %+v", s.Result)
	}
}

func TestR7RankWithoutReplicaFailsTheJob(t *testing.T) {
	killed := Exit{Code: -1, Signal: "killed", Initialized: true}
	cases := []struct {
		name   string
		r      int
		do     func(immediate) Effects
		status int
		says   string
	}{
		{"both peers lost", 2, func(w immediate) Effects {
			w.Apply(Lost{Processes: []view.Process{proc(1, 0)}, Why: "is lost with its peer A"})
			return w.Apply(Lost{Processes: []view.Process{proc(1, 1)}, Why: "is lost with its peer B"})
		}, StatusLost, "rank 1 lost all its replicas: replica 0 is lost with its peer A, replica 1 is lost with its peer B"},
		{"killed", 1, func(w immediate) Effects {
			w.Apply(Exited{Process: proc(1, 0), Exit: killed})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, StatusLost, "killed by signal killed"},
		{"all exit with one status", 2, func(w immediate) Effects {
			for k := range 2 {
				w.Apply(Exited{Process: proc(1, k), Exit: Exit{Code: 3, Initialized: true}})
			}
			return w.Apply(Drained{Process: proc(1, 0)})
		}, 3, "rank 1 exited with status 3"},
		{"one is lost, then the other exits", 2, func(w immediate) Effects {
			w.Apply(Lost{Processes: []view.Process{proc(1, 1)}, Why: "is lost"})
			w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Code: 3, Initialized: true}})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, 3, "replica 1 is lost"},
		{"statuses differ", 2, func(w immediate) Effects {
			w.Apply(Exited{Process: proc(1, 1), Exit: Exit{Code: 4, Initialized: true}})
			w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Code: 3, Initialized: true}})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, StatusLost, "status 4"},
		{"status that p2prun cannot return", 1, func(w immediate) Effects {
			w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Code: 255, Initialized: true}})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, StatusLost, "status 255"},
		{"no Finalize", 1, func(w immediate) Effects {
			w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Initialized: true}})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, StatusLost, "without calling Finalize"},
		{"hung", 1, func(w immediate) Effects {
			w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Code: -1, Signal: "killed", Reason: "no answer for 5s", Initialized: true}})
			return w.Apply(Drained{Process: proc(1, 0)})
		}, StatusLost, "no answer for 5s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := c.do(running(t, 2, c.r))
			if s.Result == nil {
				t.Fatal("the job continues")
			}
			if s.Result.Status != c.status || !strings.Contains(s.Result.Message, c.says) {
				t.Errorf("got %d %q, want %d with %q", s.Result.Status, s.Result.Message, c.status, c.says)
			}
		})
	}
}

func TestMasterChangeIsReported(t *testing.T) {
	w := running(t, 2, 3)
	s := w.Apply(Lost{Processes: []view.Process{proc(1, 0)}, Why: "is lost"})
	want := "rank 1 replica 0 is lost; replica 1 is its master now"
	if len(s.Notes) != 1 || s.Notes[0] != want {
		t.Errorf("got %q, want %q", s.Notes, want)
	}
}

func TestRankThatEndsWithoutInitIsLost(t *testing.T) {
	w := newImmediate(2, 1)
	w.Apply(Initialized{Process: proc(0, 0)})
	w.Apply(Exited{Process: proc(1, 0), Exit: Exit{}})
	s := w.Apply(Drained{Process: proc(1, 0)})
	if s.Result == nil || s.Result.Status != StatusLost || !strings.Contains(s.Result.Message, "rank 1 ended without calling mpj.Init") {
		t.Errorf("got %+v", s.Result)
	}
}

func TestProgramsWithoutInitRun(t *testing.T) {
	w := newImmediate(2, 1)
	for i := range 2 {
		w.Apply(Exited{Process: proc(i, 0), Exit: Exit{}})
	}
	w.Apply(Drained{Process: proc(0, 0)})
	if s := w.Apply(Drained{Process: proc(1, 0)}); s.Result == nil || s.Result.Status != StatusOK || !w.Uninitialized() {
		t.Errorf("got %+v", s.Result)
	}
}

func TestInitBeginsWithoutTheFailed(t *testing.T) {
	w := newImmediate(2, 2)
	for _, p := range []view.Process{proc(0, 0), proc(0, 1), proc(1, 1)} {
		if s := w.Apply(Initialized{Process: p}); s.Begin {
			t.Fatal("the job began without 1.0")
		}
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(1, 0)}, Why: "is lost"}); !s.Begin {
		t.Error("the job did not begin when the missing process had failed")
	}
}

func TestAbortEndsTheJobWithItsStatus(t *testing.T) {
	for code, want := range map[int]int{7: 7, 0: 1, 300: 1} {
		w := running(t, 2, 1)
		if s := w.Apply(Aborted{Process: proc(1, 0), Code: code, Reason: "no food", Host: hostOf(proc(1, 0))}); s.Result != nil {
			t.Fatalf("Abort(%d): the job is over before the user has its output", code)
		}
		w.Apply(Exited{Process: proc(1, 0), Exit: Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true}})
		if s := w.Apply(Drained{Process: proc(1, 0)}); s.Result == nil || s.Result.Status != want || !strings.Contains(s.Result.Message, "no food") {
			t.Errorf("Abort(%d): %+v, want %d", code, s.Result, want)
		}
	}
}

func TestR6AbortOfAReplicaWaitsForTheOutputLeader(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Aborted{Process: proc(0, 1), Code: 7, Reason: "", Host: hostOf(proc(0, 1))})
	if s := w.Apply(Exited{Process: proc(0, 1), Exit: Exit{Code: -1, Signal: "killed", Initialized: true}}); s.Result != nil || s.View != nil {
		t.Fatalf("a replica that is ahead ended the job: %+v", s)
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost"}); s.Result != nil {
		t.Fatalf("the job is over before the user has the output of 0.1: %+v", s.Result)
	}
	if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != 7 {
		t.Errorf("got %+v, want status 7", s.Result)
	}
}

func TestViewChangesAfterTheOnlyResult(t *testing.T) {
	w := running(t, 1, 2)
	finish(w, proc(0, 0))
	s := w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded}) // its files may still be needed
	if s.Result != nil || w.View().State(proc(0, 1)) != view.Finished {
		t.Errorf("got %+v", s)
	}
	if s := w.Apply(Aborted{Process: proc(0, 1), Code: 1, Reason: "late", Host: hostOf(proc(0, 1))}); s.Result != nil {
		t.Errorf("a second result: %+v", s.Result)
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 0), proc(0, 1)}, Why: "late"}); s.Result != nil {
		t.Errorf("a second result: %+v", s.Result)
	}
}

// TestV1UncommittedChangesHaveNoEffect: requested changes affect neither the view nor the messages to
// the user until they are committed.
func TestV1UncommittedChangesHaveNoEffect(t *testing.T) {
	w := running(t, 1, 2).State
	s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost"})
	want := []view.Change{{Process: proc(0, 0), To: view.Failed}}
	if !slices.Equal(s.Propose, want) || s.View != nil || s.Notes != nil || w.View().Epoch != 1 {
		t.Errorf("before: %+v, view %v", s, w.View())
	}
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost again"}); s.Propose != nil {
		t.Errorf("requested twice: %v", s.Propose)
	}
	s = w.Apply(Committed{Change: want[0]})
	if s.View == nil || s.View.Live(proc(0, 0)) || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "is lost; replica 1 is its master now") {
		t.Errorf("after: %+v", s)
	}
	if s := w.Apply(Committed{Change: want[0]}); s.View != nil || s.Notes != nil {
		t.Errorf("committed twice: %+v", s)
	}
}

// TestV2PartitionedJobStopsWithAMessage: the message lists the changes that could not be agreed on.
func TestV2PartitionedJobStopsWithAMessage(t *testing.T) {
	w := running(t, 1, 2).State
	w.Apply(Lost{Processes: []view.Process{proc(0, 0), proc(0, 1)}, Why: "is lost"})
	r := w.Apply(CutOff{}).Result
	if r == nil || r.Status != StatusLost || !strings.Contains(r.Message, "cut off from the majority of the job's peers") ||
		!strings.Contains(r.Message, "; rank 0 replica 1 is lost") {
		t.Errorf("got %+v", r)
	}
	if w.Apply(CutOff{}).Result != nil {
		t.Error("the job has a second result")
	}
}

// TestAbortWhileTheSubmitterIsDisconnected: the peers have failed the replicas by themselves, and
// the rank's earlier output is lost. The reason for the end of the job is not lost.
func TestAbortWhileTheSubmitterIsDisconnected(t *testing.T) {
	w := running(t, 2, 2)
	for k := range 2 {
		w.Apply(Aborted{Process: proc(1, k), Code: 7, Reason: "no food", Host: hostOf(proc(1, k))})
		w.Apply(Exited{Process: proc(1, k), Exit: Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true}})
	}
	w.State.Apply(Committed{Change: view.Change{Process: proc(1, 0), To: view.Failed}})
	if s := w.State.Apply(Committed{Change: view.Change{Process: proc(1, 1), To: view.Failed}}); s.Result == nil || s.Result.Status != 7 {
		t.Errorf("got %+v, want status 7", s.Result)
	}
}

func TestRequestsArePendingUntilCommitted(t *testing.T) {
	w := NewState(1, 2)
	if len(w.Asked()) > 0 {
		t.Error("a new State has pending requests")
	}
	w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
	if len(w.Asked()) == 0 {
		t.Error("no request is pending after a loss")
	}
	w.Apply(Committed{Change: view.Change{Process: proc(0, 1), To: view.Failed}})
	if len(w.Asked()) > 0 {
		t.Error("a committed request is still pending")
	}
}

// TestLossOfAProcessThatHasNotJoined: such a loss does not change the view.
func TestLossOfAProcessThatHasNotJoined(t *testing.T) {
	w := running(t, 2, 2)
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 2), proc(1, 2)}, Why: "gone"}); s.View != nil || s.Result != nil {
		t.Errorf("got %+v", s)
	}
}

func TestO2LeavingReplicaEndsIfAnotherStays(t *testing.T) {
	w := running(t, 2, 2)
	s := w.Apply(Leaves{Process: proc(0, 0)})
	if s.View == nil || s.View.State(proc(0, 0)) != view.Failed || !s.View.IsMaster(proc(0, 1)) {
		t.Fatalf("0.1 did not become master: %+v", s)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "left with its peer") || !strings.Contains(s.Notes[0], "replica 1 is its master now") {
		t.Errorf("the user is told %q", s.Notes)
	}
	if s.Result != nil || !w.Lacks(0) || w.Lacks(1) {
		t.Errorf("result %v; rank 0 lacks a replica: %v, rank 1: %v", s.Result, w.Lacks(0), w.Lacks(1))
	}
}

// TestO2LeaveIsRequestedAgain: a request to leave has no effect while the replica that stays is aside, or if it has
// failed. It is made again when a replica stays.
func TestO2LeaveIsRequestedAgain(t *testing.T) {
	w := running(t, 1, 3)
	leaves := func(stays int) []view.Change {
		return []view.Change{{Process: proc(0, 0), To: view.Failed, At: uint64(stays) + 1}}
	}
	commit := func(c view.Change) []view.Change { return w.State.Apply(Committed{Change: c}).Propose }
	if got := w.State.Apply(Leaves{Process: proc(0, 0)}).Propose; !slices.Equal(got, leaves(1)) {
		t.Errorf("requested %+v", got)
	}
	if got := w.State.Apply(Leaves{Process: proc(0, 0)}).Propose; len(got) > 0 {
		t.Errorf("requested %+v again although nothing has changed", got)
	}
	if got := commit(view.Change{Process: proc(0, 2), To: view.Failed}); len(got) > 0 {
		t.Errorf("requested %+v again although replica 1 stays", got)
	}
	if got := commit(view.Change{Process: proc(0, 1), To: view.Live, Aside: true}); len(got) > 0 {
		t.Errorf("requested %+v although no replica stays", got)
	}
	if commit(leaves(1)[0]); w.View().State(proc(0, 0)) != view.Live {
		t.Error("the last replica that counts has left")
	}
	back := view.Change{Process: proc(0, 1), To: view.Live, At: w.View().AsideSince(proc(0, 1)), Since: w.View().Since[0]}
	if got := commit(back); !slices.Equal(got, leaves(1)) {
		t.Errorf("after the return of replica 1: requested %+v", got)
	}
	if commit(leaves(1)[0]); w.View().State(proc(0, 0)) != view.Failed {
		t.Error("the replica has not left")
	}
}

func TestO2LastReplicaLeavesAfterItsReplacement(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Apply(Leaves{Process: proc(0, 1)}); s.View == nil {
		t.Fatal("the first replica did not leave")
	}
	if s := w.Apply(Leaves{Process: proc(0, 0)}); s.View != nil || s.Result != nil || !w.Lacks(0) {
		t.Fatalf("the last replica left at once: %+v", s)
	}
	if s := w.Apply(Recruited{Process: proc(0, 2)}); s.View != nil && !s.View.Live(proc(0, 0)) {
		t.Fatalf("the last replica left before the new one had caught up: %+v", s)
	}
	s := w.Apply(Healed{Process: proc(0, 2)})
	if s.View == nil || s.View.State(proc(0, 0)) != view.Failed || !s.View.IsMaster(proc(0, 2)) || s.Result != nil {
		t.Fatalf("after the new one had caught up: %+v", s)
	}
	if !w.Lacks(0) { // only one of two replicas is left
		t.Error("the rank does not ask for another replica")
	}
}

func TestO2FinishedReplicaHandsItsOutputOver(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Exited{Process: proc(0, 0), Exit: wellEnded})
	s := w.Apply(Leaves{Process: proc(0, 0)})
	if s.View == nil || !s.View.IsOutputLeader(proc(0, 1)) || s.Result != nil {
		t.Fatalf("got %+v, want 0.1 as output leader", s)
	}
	w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded})
	if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("result %+v", s.Result)
	}
}

func TestO2ReplicaDoesNotLeaveIfTheOtherFails(t *testing.T) {
	w := running(t, 1, 2)
	w.Apply(Exited{Process: proc(0, 0), Exit: Exit{Code: 3, Initialized: true}}) // the output leader, whose output was not shown
	if s := w.Apply(Leaves{Process: proc(0, 1)}); s.View != nil || s.Result != nil {
		t.Errorf("got %+v, want 0.1 to stay", s)
	}
}

// TestDecidedNeedsTheOutputLeaders follows a job of two ranks until no further change of the view is needed.
func TestDecidedNeedsTheOutputLeaders(t *testing.T) {
	s := NewState(2, 2)
	for _, step := range []struct {
		what  string
		event Event
		want  bool
	}{
		{"rank 0 has finished", Committed{Change: view.Change{Process: proc(0, 0), To: view.Finished}}, false},
		{"rank 1 has finished", Committed{Change: view.Change{Process: proc(1, 1), To: view.Finished}}, true},
		{"an output leader is lost", Lost{Processes: []view.Process{proc(1, 1)}, Why: "is lost"}, false},
		{"its output is complete", Drained{Process: proc(1, 1)}, true},
		{"another output leader is lost", Lost{Processes: []view.Process{proc(0, 0)}, Why: "is lost"}, false},
	} {
		s.Apply(step.event)
		if got := s.Decided(s.View()); got != step.want {
			t.Errorf("%s: decided %v, want %v", step.what, got, step.want)
		}
	}
	v := s.View()
	for k := range 2 {
		v, _ = v.With(proc(1, k), view.Failed)
	}
	if !s.Decided(v) {
		t.Error("not decided, although a rank is lost")
	}
}
