package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

func proc(rank, replica int) view.Process { return view.Process{Rank: rank, Replica: replica} }

var wellEnded = Exit{Initialized: true, Finalized: true}

// A sole is a watch whose proposals take effect at once, as those of a submitter without a view
// group do.
type sole struct{ *State }

func newSole(n, r int) sole { return sole{NewState(n, r)} }

// agree commits the proposals of s and of the steps that follow; View is the last view.
func (w sole) agree(s Effects) Effects {
	for _, c := range s.Propose {
		next := w.agree(w.Committed(c))
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

func (w sole) Initialized(p view.Process) Effects    { return w.agree(w.State.Initialized(p)) }
func (w sole) Exited(p view.Process, e Exit) Effects { return w.agree(w.State.Exited(p, e)) }
func (w sole) Drained(p view.Process) Effects        { return w.agree(w.State.Drained(p)) }
func (w sole) Lost(ps []view.Process, why string) Effects {
	return w.agree(w.State.Lost(ps, why))
}
func (w sole) Aborted(p view.Process, code int, reason string) Effects {
	return w.agree(w.State.Aborted(p, code, reason, "P"+p.String()))
}
func (w sole) Join(p view.Process) Effects   { return w.agree(w.State.Join(p)) }
func (w sole) Ahead(p view.Process) Effects  { return w.agree(w.State.Ahead(p)) }
func (w sole) Healed(p view.Process) Effects { return w.agree(w.State.Healed(p)) }
func (w sole) Diverged(p view.Process, d protection.Divergence, text string) Effects {
	return w.agree(w.State.Diverged(p, d, text))
}

// running returns the watch of a job in which every process has left mpj.Init.
func running(t *testing.T, n, r int) sole {
	t.Helper()
	w := newSole(n, r)
	ps := w.View().Processes()
	for i, p := range ps {
		if s := w.Initialized(p); s.Begin != (i == len(ps)-1) {
			t.Fatalf("begin after %d of %d processes", i+1, len(ps))
		}
	}
	return w
}

// finish makes p end successfully, with all its output shown.
func finish(w sole, p view.Process) Effects {
	w.Exited(p, wellEnded)
	return w.Drained(p)
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
	s := w.Lost([]view.Process{proc(0, 0), proc(1, 1)}, "is lost")
	if s.View == nil || s.View.Epoch != 3 {
		t.Fatalf("two failures gave view %+v, want epoch 3", s.View)
	}
	if s := w.Lost([]view.Process{proc(0, 0)}, "is lost again"); s.View != nil {
		t.Errorf("a process failed twice: %+v", s.View)
	}
}

func TestR6OutputOfAProcessThatExitedIsAwaited(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Exited(proc(0, 0), Exit{Code: 3, Initialized: true}); s.View != nil {
		t.Fatal("the speaker was judged before its output was out")
	}
	s := w.Drained(proc(0, 0))
	if s.View == nil || w.View().State(proc(0, 0)) != view.Failed {
		t.Errorf("not judged after its output was out: %+v", s)
	}
}

func TestMostAdvancedReplicaBecomesMaster(t *testing.T) {
	w := newSole(1, 3)
	if s := w.Ahead(proc(0, 1)); s.View != nil {
		t.Fatal("moved before the job has begun")
	}
	w = running(t, 1, 3)
	s := w.Ahead(proc(0, 1))
	if s.View == nil || !s.View.IsMaster(proc(0, 1)) || !s.View.Live(proc(0, 0)) || len(s.Notes) != 0 {
		t.Fatalf("got %+v, want 0.1 as master, and nothing that the user has to know", s)
	}
	w.Exited(proc(0, 2), Exit{Code: 3, Initialized: true})
	for _, p := range []view.Process{proc(0, 1), proc(0, 2), proc(0, 3), proc(1, 0)} {
		if s := w.Ahead(p); s.View != nil {
			t.Errorf("%v: a master, a failed process or none became master: %+v", p, s.View)
		}
	}
}

func TestMastershipChangesAreBounded(t *testing.T) {
	w := running(t, 1, 2)
	for range 2 * maxMoves {
		w.Ahead(proc(0, 0))
		w.Ahead(proc(0, 1))
	}
	if e := w.View().Epoch; e != 1+maxMoves {
		t.Errorf("epoch %d, want one for each of %d moves", e, maxMoves)
	}
}

func TestR6OutputOfAKilledMasterIsNotAwaitedOnceReplaced(t *testing.T) {
	w := running(t, 1, 2)
	w.Exited(proc(0, 0), Exit{Code: -1, Signal: "killed", Initialized: true})
	if s := w.Ahead(proc(0, 1)); s.View == nil || s.View.State(proc(0, 0)) != view.Failed || s.Result != nil {
		t.Errorf("got %+v, want 0.0 failed", s)
	}
}

func TestFirstFinishedReplicaIsOutputLeader(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Exited(proc(0, 1), wellEnded); s.Result != nil || !w.View().IsOutputLeader(proc(0, 1)) {
		t.Fatalf("%+v with view %+v: want 0.1 to speak", s.Result, w.View())
	}
	if s := w.Drained(proc(0, 1)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("%+v: the job waits for the slower replica", s.Result)
	}
}

func TestR6OutputOfAKilledLeaderIsNotAwaitedOnceAnotherFinished(t *testing.T) {
	w := running(t, 1, 2)
	w.Exited(proc(0, 0), Exit{Code: -1, Signal: "killed", Initialized: true})
	if !w.View().Live(proc(0, 0)) {
		t.Fatal("the speaker was judged before its output was out")
	}
	w.Exited(proc(0, 1), wellEnded)
	if got := w.View().State(proc(0, 0)); got != view.Failed {
		t.Errorf("0.0 is %v: others wait for what it acknowledges", got)
	}
}

func TestR6FinishedLeaderIsReplacedIfItsPeerIsLostBeforeItsOutput(t *testing.T) {
	w := running(t, 1, 2)
	w.Exited(proc(0, 1), wellEnded) // not the output leader: judged at once
	if got := w.View().State(proc(0, 1)); got != view.Finished {
		t.Fatalf("0.1 is %v, want finished", got)
	}
	s := w.Lost([]view.Process{proc(0, 0)}, "is lost")
	if s.Result != nil {
		t.Fatalf("over before the output of 0.1 is out: %+v", s.Result)
	}
	if s := w.Drained(proc(0, 1)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("not over: %+v", s.Result)
	}
}

func TestR7RankWithoutReplicaFailsTheJob(t *testing.T) {
	killed := Exit{Code: -1, Signal: "killed", Initialized: true}
	cases := []struct {
		name   string
		r      int
		do     func(sole) Effects
		status int
		says   string
	}{
		{"both peers lost", 2, func(w sole) Effects {
			w.Lost([]view.Process{proc(1, 0)}, "is lost with its peer A")
			return w.Lost([]view.Process{proc(1, 1)}, "is lost with its peer B")
		}, StatusLost, "rank 1 lost all its replicas: replica 0 is lost with its peer A, replica 1 is lost with its peer B"},
		{"killed", 1, func(w sole) Effects {
			w.Exited(proc(1, 0), killed)
			return w.Drained(proc(1, 0))
		}, StatusLost, "killed by signal killed"},
		{"own status on all", 2, func(w sole) Effects {
			for k := range 2 {
				w.Exited(proc(1, k), Exit{Code: 3, Initialized: true})
			}
			return w.Drained(proc(1, 0))
		}, 3, "rank 1 exited with status 3"},
		{"one lost, then own status", 2, func(w sole) Effects {
			w.Lost([]view.Process{proc(1, 1)}, "is lost")
			w.Exited(proc(1, 0), Exit{Code: 3, Initialized: true})
			return w.Drained(proc(1, 0))
		}, 3, "replica 1 is lost"},
		{"statuses differ", 2, func(w sole) Effects {
			w.Exited(proc(1, 1), Exit{Code: 4, Initialized: true})
			w.Exited(proc(1, 0), Exit{Code: 3, Initialized: true})
			return w.Drained(proc(1, 0))
		}, StatusLost, "status 4"},
		{"status that p2prun cannot have", 1, func(w sole) Effects {
			w.Exited(proc(1, 0), Exit{Code: 255, Initialized: true})
			return w.Drained(proc(1, 0))
		}, StatusLost, "status 255"},
		{"no Finalize", 1, func(w sole) Effects {
			w.Exited(proc(1, 0), Exit{Initialized: true})
			return w.Drained(proc(1, 0))
		}, StatusLost, "without calling Finalize"},
		{"hung", 1, func(w sole) Effects {
			w.Exited(proc(1, 0), Exit{Code: -1, Signal: "killed", Reason: "no answer for 5s", Initialized: true})
			return w.Drained(proc(1, 0))
		}, StatusLost, "no answer for 5s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := c.do(running(t, 2, c.r))
			if s.Result == nil {
				t.Fatal("the job goes on")
			}
			if s.Result.Status != c.status || !strings.Contains(s.Result.Message, c.says) {
				t.Errorf("got %d %q, want %d with %q", s.Result.Status, s.Result.Message, c.status, c.says)
			}
		})
	}
}

func TestMasterChangeIsReported(t *testing.T) {
	w := running(t, 2, 3)
	s := w.Lost([]view.Process{proc(1, 0)}, "is lost")
	want := "rank 1 replica 0 is lost; replica 1 is its master now"
	if len(s.Notes) != 1 || s.Notes[0] != want {
		t.Errorf("got %q, want %q", s.Notes, want)
	}
}

func TestRankThatEndsWithoutInitIsLost(t *testing.T) {
	w := newSole(2, 1)
	w.Initialized(proc(0, 0))
	w.Exited(proc(1, 0), Exit{})
	s := w.Drained(proc(1, 0))
	if s.Result == nil || s.Result.Status != StatusLost || !strings.Contains(s.Result.Message, "rank 1 ended without calling mpj.Init") {
		t.Errorf("got %+v", s.Result)
	}
}

func TestProgramsWithoutInitRun(t *testing.T) {
	w := newSole(2, 1)
	for i := range 2 {
		w.Exited(proc(i, 0), Exit{})
	}
	w.Drained(proc(0, 0))
	if s := w.Drained(proc(1, 0)); s.Result == nil || s.Result.Status != StatusOK || !w.Uninitialized() {
		t.Errorf("got %+v", s.Result)
	}
}

func TestInitBeginsWithoutTheFailed(t *testing.T) {
	w := newSole(2, 2)
	for _, p := range []view.Process{proc(0, 0), proc(0, 1), proc(1, 1)} {
		if s := w.Initialized(p); s.Begin {
			t.Fatal("began without 1.0")
		}
	}
	if s := w.Lost([]view.Process{proc(1, 0)}, "is lost"); !s.Begin {
		t.Error("did not begin when the missing one had failed")
	}
}

func TestAbortEndsTheJobWithItsStatus(t *testing.T) {
	for code, want := range map[int]int{7: 7, 0: 1, 300: 1} {
		w := running(t, 2, 1)
		if s := w.Aborted(proc(1, 0), code, "no food"); s.Result != nil {
			t.Fatalf("Abort(%d): over before its output is out", code)
		}
		w.Exited(proc(1, 0), Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true})
		if s := w.Drained(proc(1, 0)); s.Result == nil || s.Result.Status != want || !strings.Contains(s.Result.Message, "no food") {
			t.Errorf("Abort(%d): %+v, want %d", code, s.Result, want)
		}
	}
}

func TestR6AbortOfAReplicaWaitsForTheOutputLeader(t *testing.T) {
	w := running(t, 1, 2)
	w.Aborted(proc(0, 1), 7, "")
	if s := w.Exited(proc(0, 1), Exit{Code: -1, Signal: "killed", Initialized: true}); s.Result != nil || s.View != nil {
		t.Fatalf("a replica that is ahead ended the job: %+v", s)
	}
	if s := w.Lost([]view.Process{proc(0, 0)}, "is lost"); s.Result != nil {
		t.Fatalf("over before the output of 0.1 is out: %+v", s.Result)
	}
	if s := w.Drained(proc(0, 1)); s.Result == nil || s.Result.Status != 7 {
		t.Errorf("got %+v, want status 7", s.Result)
	}
}

func TestViewChangesAfterTheOnlyResult(t *testing.T) {
	w := running(t, 1, 2)
	finish(w, proc(0, 0))
	s := w.Exited(proc(0, 1), wellEnded) // its files may still be needed
	if s.Result != nil || w.View().State(proc(0, 1)) != view.Finished {
		t.Errorf("got %+v", s)
	}
	if s := w.Aborted(proc(0, 1), 1, "late"); s.Result != nil {
		t.Errorf("a second result: %+v", s.Result)
	}
	if s := w.Lost([]view.Process{proc(0, 0), proc(0, 1)}, "late"); s.Result != nil {
		t.Errorf("a second result: %+v", s.Result)
	}
}

// TestV1UncommittedChangesHaveNoEffect: requests of the watch change neither the view nor the
// messages to the user until they are committed.
func TestV1UncommittedChangesHaveNoEffect(t *testing.T) {
	w := running(t, 1, 2).State
	s := w.Lost([]view.Process{proc(0, 0)}, "is lost")
	want := []view.Change{{Process: proc(0, 0), To: view.Failed}}
	if !slices.Equal(s.Propose, want) || s.View != nil || s.Notes != nil || w.View().Epoch != 1 {
		t.Errorf("before: %+v, view %v", s, w.View())
	}
	if s := w.Lost([]view.Process{proc(0, 0)}, "is lost again"); s.Propose != nil {
		t.Errorf("asked for twice: %v", s.Propose)
	}
	s = w.Committed(want[0])
	if s.View == nil || s.View.Live(proc(0, 0)) || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "is lost; replica 1 is its master now") {
		t.Errorf("after: %+v", s)
	}
	if s := w.Committed(want[0]); s.View != nil || s.Notes != nil {
		t.Errorf("committed twice: %+v", s)
	}
}

// TestV2PartitionedJobStopsWithAMessage: the message lists the changes that could not be agreed on.
func TestV2PartitionedJobStopsWithAMessage(t *testing.T) {
	w := running(t, 1, 2).State
	w.Lost([]view.Process{proc(0, 0), proc(0, 1)}, "is lost")
	r := w.CutOff().Result
	if r == nil || r.Status != StatusLost || !strings.Contains(r.Message, "cut off from the majority of the job's peers") ||
		!strings.Contains(r.Message, "; rank 0 replica 1 is lost") {
		t.Errorf("got %+v", r)
	}
	if w.CutOff().Result != nil {
		t.Error("the job is over twice")
	}
}

// TestAbortWhileTheSubmitterIsDisconnected: the peers have failed the replicas by themselves, and
// the rank's earlier output is lost. The reason for the end is not.
func TestAbortWhileTheSubmitterIsDisconnected(t *testing.T) {
	w := running(t, 2, 2)
	for k := range 2 {
		w.Aborted(proc(1, k), 7, "no food")
		w.Exited(proc(1, k), Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true})
	}
	w.Committed(view.Change{Process: proc(1, 0), To: view.Failed})
	if s := w.Committed(view.Change{Process: proc(1, 1), To: view.Failed}); s.Result == nil || s.Result.Status != 7 {
		t.Errorf("got %+v, want status 7", s.Result)
	}
}

func TestWatchRepeatsRequestsUntilCommitted(t *testing.T) {
	w := NewState(1, 2)
	if len(w.Asked()) > 0 {
		t.Error("it asks for something at first")
	}
	w.Lost([]view.Process{proc(0, 1)}, "is lost")
	if len(w.Asked()) == 0 {
		t.Error("it asks for nothing")
	}
	w.Committed(view.Change{Process: proc(0, 1), To: view.Failed})
	if len(w.Asked()) > 0 {
		t.Error("it still asks for what has been agreed on")
	}
}

// TestLossOfAProcessThatHasNotJoined: such a loss does not change the view.
func TestLossOfAProcessThatHasNotJoined(t *testing.T) {
	w := running(t, 2, 2)
	if s := w.Lost([]view.Process{proc(0, 2), proc(1, 2)}, "gone"); s.View != nil || s.Result != nil {
		t.Errorf("step %v", s)
	}
}

func (w sole) Leaves(p view.Process) Effects { return w.agree(w.State.Leaves(p)) }

func TestO2LeavingReplicaEndsIfAnotherStays(t *testing.T) {
	w := running(t, 2, 2)
	s := w.Leaves(proc(0, 0))
	if s.View == nil || s.View.State(proc(0, 0)) != view.Failed || !s.View.IsMaster(proc(0, 1)) {
		t.Fatalf("the mastership was not handed over: %+v", s)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "left with its peer") || !strings.Contains(s.Notes[0], "replica 1 is its master now") {
		t.Errorf("the user reads %q", s.Notes)
	}
	if s.Result != nil || !w.Lacks(0) || w.Lacks(1) {
		t.Errorf("result %v; rank 0 lacks a replica: %v, rank 1: %v", s.Result, w.Lacks(0), w.Lacks(1))
	}
}

func TestO2LastReplicaLeavesAfterItsReplacement(t *testing.T) {
	w := running(t, 1, 2)
	if s := w.Leaves(proc(0, 1)); s.View == nil {
		t.Fatal("the first did not go")
	}
	if s := w.Leaves(proc(0, 0)); s.View != nil || s.Result != nil || !w.Lacks(0) {
		t.Fatalf("the last went at once: %+v", s)
	}
	if s := w.Join(proc(0, 2)); s.View != nil && !s.View.Live(proc(0, 0)) {
		t.Fatalf("it went before the new one had caught up: %+v", s)
	}
	s := w.Healed(proc(0, 2))
	if s.View == nil || s.View.State(proc(0, 0)) != view.Failed || !s.View.IsMaster(proc(0, 2)) || s.Result != nil {
		t.Fatalf("after the new one had caught up: %+v", s)
	}
	if !w.Lacks(0) { // only one of two replicas is left
		t.Error("nobody is looked for in its place")
	}
}

func TestO2FinishedReplicaHandsItsOutputOver(t *testing.T) {
	w := running(t, 1, 2)
	w.Exited(proc(0, 0), wellEnded)
	s := w.Leaves(proc(0, 0))
	if s.View == nil || !s.View.IsOutputLeader(proc(0, 1)) || s.Result != nil {
		t.Fatalf("got %+v, want the other one to speak", s)
	}
	w.Exited(proc(0, 1), wellEnded)
	if s := w.Drained(proc(0, 1)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("result %+v", s.Result)
	}
}

func TestO2ReplicaDoesNotLeaveIfTheOtherFails(t *testing.T) {
	w := running(t, 1, 2)
	w.Exited(proc(0, 0), Exit{Code: 3, Initialized: true}) // the output leader, whose output was not shown
	if s := w.Leaves(proc(0, 1)); s.View != nil || s.Result != nil {
		t.Errorf("got %+v, want it to wait", s)
	}
}
