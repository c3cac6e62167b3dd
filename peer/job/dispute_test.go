package job

import (
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// says passes the report of replica k of rank 0 about its first message to a receiver: what it has
// produced, and what the receiver has got.
func says(w sole, k int, receiver view.Process, produced, received uint64) Effects {
	d := protection.Divergence{Receiver: receiver, Context: 256, Seq: 1, Produced: produced, Received: received}
	return w.Diverged(proc(0, k), d, "evidence of 0."+string(rune('0'+k)))
}

// TestDivergence passes the reports of replicas of rank 0 to the watch, and checks the final view
// and result.
func TestDivergence(t *testing.T) {
	type saying struct {
		replica            int
		produced, received uint64
	}
	tests := []struct {
		name     string
		replicas int
		said     []saying
		failed   []view.Process
		stopped  bool
	}{
		{"two differ", 2, []saying{{1, 7, 5}}, nil, true},
		{"one of three deviates, not the master", 3, []saying{{1, 7, 5}, {0, 5, 5}, {2, 5, 5}}, []view.Process{proc(0, 1)}, false},
		{"the votes come first", 3, []saying{{0, 5, 5}, {2, 5, 5}, {1, 7, 5}}, []view.Process{proc(0, 1)}, false},
		{"a vote is missing", 3, []saying{{1, 7, 5}, {0, 5, 5}}, nil, false},
		{"no votes", 3, []saying{{1, 7, 5}}, nil, false},
		{"all agree", 3, []saying{{0, 5, 5}, {1, 5, 5}, {2, 5, 5}}, nil, false},
		{"a second report does not count", 3, []saying{{1, 7, 5}, {1, 5, 5}, {0, 5, 5}}, nil, false},
		{"the receivers got a minority's message", 3, []saying{{1, 7, 5}, {2, 7, 5}, {0, 5, 5}}, nil, true},
		{"all three differ", 3, []saying{{0, 5, 5}, {1, 6, 5}, {2, 7, 5}}, nil, true},
		{"all contradict the receiver", 3, []saying{{0, 5, 9}, {1, 5, 9}, {2, 5, 9}}, []view.Process{proc(1, 2)}, false},
		{"one of five", 5, []saying{{4, 7, 5}, {0, 5, 5}, {1, 5, 5}, {2, 5, 5}}, []view.Process{proc(0, 4)}, false},
		{"two of five, one after the other", 5, []saying{{4, 7, 5}, {0, 5, 5}, {1, 5, 5}, {2, 5, 5}, {3, 7, 5}},
			[]view.Process{proc(0, 4), proc(0, 3)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := running(t, 2, tt.replicas)
			var last Effects
			for _, x := range tt.said {
				if last.Result != nil {
					t.Fatalf("stopped before %+v", x)
				}
				last = says(w, x.replica, proc(1, tt.replicas-1), x.produced, x.received)
			}
			for _, p := range w.View().Processes() {
				want := view.Live
				for _, f := range tt.failed {
					if f == p {
						want = view.Failed
					}
				}
				if got := w.View().State(p); got != want {
					t.Errorf("%v is %v, want %v", p, got, want)
				}
			}
			if stopped := last.Result != nil; stopped != tt.stopped {
				t.Errorf("stopped %v, want %v", stopped, tt.stopped)
			} else if stopped && (last.Result.Status != StatusDiverged || !strings.Contains(last.Result.Message, "evidence of 0.")) {
				t.Errorf("result %+v", last.Result)
			}
		})
	}
}

func TestDivergenceIsReportedOncePerReplica(t *testing.T) {
	w := running(t, 2, 3)
	for i, want := range []string{"evidence of 0.1", ""} {
		if s := says(w, 1, proc(1, 0), 7, 5); strings.Join(s.Notes, " ") != want {
			t.Errorf("word %d: notes %q, want %q", i, s.Notes, want)
		}
	}
}

func TestDivergenceIsReportedOnlyIfRequested(t *testing.T) {
	w := running(t, 2, 2)
	w.Tolerant = true
	if s := says(w, 1, proc(1, 0), 7, 5); s.Result != nil || s.View != nil || len(s.Notes) != 1 {
		t.Errorf("got %+v, want a note only", s)
	}
	finish(w, proc(0, 0))
	if s := finish(w, proc(1, 0)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("result %+v", s.Result)
	}
}

// TestUndecidedDivergenceInvalidatesTheAnswer: a missing report leaves a dispute undecided until
// the end of the job.
func TestUndecidedDivergenceInvalidatesTheAnswer(t *testing.T) {
	w := running(t, 2, 3)
	says(w, 1, proc(1, 0), 7, 5)
	finish(w, proc(0, 0))
	if s := finish(w, proc(1, 0)); s.Result == nil || s.Result.Status != StatusDiverged {
		t.Errorf("result %+v, want status %d", s.Result, StatusDiverged)
	}
}

// TestDivergenceIsDecidedWhenAVoterFails: too few replicas may be left to wait for.
func TestDivergenceIsDecidedWhenAVoterFails(t *testing.T) {
	w := running(t, 2, 3)
	says(w, 1, proc(1, 0), 7, 5)
	if s := w.Lost([]view.Process{proc(0, 2)}, "is lost"); s.Result == nil || s.Result.Status != StatusDiverged {
		t.Errorf("result %+v, want status %d", s.Result, StatusDiverged)
	}
}

func TestDivergenceOfFailedReplicasIsIgnored(t *testing.T) {
	w := running(t, 2, 3)
	says(w, 1, proc(1, 0), 7, 5)
	says(w, 0, proc(1, 0), 5, 5)
	says(w, 2, proc(1, 0), 5, 5) // votes out 0.1
	if s := says(w, 1, proc(1, 1), 7, 5); s.Result != nil || len(s.Notes) != 0 {
		t.Errorf("got %+v of a process that was voted out", s)
	}
	finish(w, proc(0, 0))
	if s := finish(w, proc(1, 0)); s.Result == nil || s.Result.Status != StatusOK {
		t.Errorf("result %+v", s.Result)
	}
}

// TestDivergenceReportsAreBounded: the many reports of a liar do not use up the limit of the others.
func TestDivergenceReportsAreBounded(t *testing.T) {
	w := running(t, 2, 3)
	for seq := range uint64(2 * MaxReports) {
		w.Diverged(proc(0, 1), protection.Divergence{Receiver: proc(1, 0), Seq: seq + 2}, "")
	}
	if len(w.disputes) != MaxReports {
		t.Errorf("%d disputes, at most %d are kept", len(w.disputes), MaxReports)
	}
	says(w, 0, proc(1, 0), 5, 5)
	says(w, 2, proc(1, 0), 7, 5)
	if s := w.Lost([]view.Process{proc(0, 1)}, "is lost"); s.Result == nil || s.Result.Status != StatusDiverged {
		t.Errorf("got %+v, want what 0.2 has said to stop the job", s)
	}
}

// TestV4LateDivergenceInvalidatesTheAnswer: a liar sent a wrong message, and all ranks computed to
// the end with it. The honest replica of its rank produces that message while the answer is being
// confirmed. With three replicas, a liar is harmless if no rank has received its message.
func TestV4LateDivergenceInvalidatesTheAnswer(t *testing.T) {
	for r, status := range map[int]int{2: StatusDiverged, 3: StatusOK} {
		w := running(t, 2, r)
		finish(w, proc(0, 0))
		if s := finish(w, proc(1, 0)); s.Result == nil || s.Result.Status != StatusOK {
			t.Fatalf("result %+v", s.Result)
		}
		received := uint64(7) // the message that the liar produced
		if r == 3 {
			received = 5
		}
		says(w, 0, proc(1, 0), 7, received)
		for k := 1; k < r; k++ {
			says(w, k, proc(1, 0), 5, received)
		}
		if got := w.Answer(); got.Status != status {
			t.Errorf("%d replicas: result %+v, want status %d", r, got, status)
		}
	}
}

// TestV4LateAbortInvalidatesTheAnswer: the honest replica calls Abort while the answer of the other
// one is being confirmed.
func TestV4LateAbortInvalidatesTheAnswer(t *testing.T) {
	w := running(t, 1, 2)
	if s := finish(w, proc(0, 0)); s.Result == nil || s.Result.Status != StatusOK {
		t.Fatalf("result %+v", s.Result)
	}
	w.Aborted(proc(0, 1), 3, "no convergence")
	if got := w.Answer(); got.Status != StatusDiverged {
		t.Errorf("result %+v, want status %d", got, StatusDiverged)
	}
}
