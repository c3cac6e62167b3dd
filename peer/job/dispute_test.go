package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// says passes the report of replica k of rank 0 about its first message to a receiver: the message
// that the replica has produced, and the one that the receiver has received.
func says(w immediate, k int, receiver view.Process, produced, received uint64) Effects {
	d := protection.Divergence{Receiver: receiver, Context: 256, Seq: 1, Produced: produced, Received: received}
	return w.Apply(Diverged{Process: proc(0, k), Divergence: d, Text: "evidence of 0." + string(rune('0'+k))})
}

// TestDivergence passes the reports of replicas of rank 0 to a State, and checks the final view and
// result.
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
		{"the votes of the majority are first", 3, []saying{{0, 5, 5}, {2, 5, 5}, {1, 7, 5}}, []view.Process{proc(0, 1)}, false},
		{"a vote is missing", 3, []saying{{1, 7, 5}, {0, 5, 5}}, nil, false},
		{"no votes", 3, []saying{{1, 7, 5}}, nil, false},
		{"all agree", 3, []saying{{0, 5, 5}, {1, 5, 5}, {2, 5, 5}}, nil, false},
		{"a second report does not count", 3, []saying{{1, 7, 5}, {1, 5, 5}, {0, 5, 5}}, nil, false},
		{"the receivers got a minority's message", 3, []saying{{1, 7, 5}, {2, 7, 5}, {0, 5, 5}}, nil, true},
		{"all three differ", 3, []saying{{0, 5, 5}, {1, 6, 5}, {2, 7, 5}}, nil, true},
		{"all contradict the receiver", 3, []saying{{0, 5, 9}, {1, 5, 9}, {2, 5, 9}}, []view.Process{proc(1, 2)}, false},
		{"one of five deviates", 5, []saying{{4, 7, 5}, {0, 5, 5}, {1, 5, 5}, {2, 5, 5}}, []view.Process{proc(0, 4)}, false},
		{"two of five deviate, one after the other", 5, []saying{{4, 7, 5}, {0, 5, 5}, {1, 5, 5}, {2, 5, 5}, {3, 7, 5}},
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
			t.Errorf("report %d: notes %q, want %q", i, s.Notes, want)
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

// TestDivergenceIsDecidedWhenAVoterFails: a dispute is decided when too few replicas are left.
func TestDivergenceIsDecidedWhenAVoterFails(t *testing.T) {
	w := running(t, 2, 3)
	says(w, 1, proc(1, 0), 7, 5)
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 2)}, Why: "is lost"}); s.Result == nil || s.Result.Status != StatusDiverged {
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
		w.Apply(Diverged{Process: proc(0, 1), Divergence: protection.Divergence{Receiver: proc(1, 0), Seq: seq + 2}, Text: ""})
	}
	if len(w.disputes) != MaxReports {
		t.Errorf("%d disputes are stored, want %d", len(w.disputes), MaxReports)
	}
	says(w, 0, proc(1, 0), 5, 5)
	says(w, 2, proc(1, 0), 7, 5)
	if s := w.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"}); s.Result == nil || s.Result.Status != StatusDiverged {
		t.Errorf("got %+v, want the report of 0.2 to end the job", s)
	}
}

// TestV4LateDivergenceInvalidatesTheAnswer: a liar sent a wrong message, and all ranks computed their
// answer from that message. The honest replica of the liar's rank reports its own message while the
// answer is being confirmed. With three replicas, a liar is harmless if no rank has received its
// message.
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
	w.Apply(Aborted{Process: proc(0, 1), Code: 3, Reason: "no convergence", Host: hostOf(proc(0, 1))})
	if got := w.Answer(); got.Status != StatusDiverged {
		t.Errorf("result %+v, want status %d", got, StatusDiverged)
	}
}

// TestDecide passes the messages that the counting replicas have produced, in their order, to a dispute
// about a message that the receiver has received as number 5.
func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name      string
		counting  int
		produced  []uint64
		receivers int // counting replicas of the receiver's rank
		odd       []view.Process
		diverged  bool
	}{
		{"two replicas", 2, []uint64{5, 7}, 3, nil, true},
		{"most agree with the receiver", 3, []uint64{5, 5, 7}, 1, []view.Process{proc(0, 2)}, false},
		{"a report is missing", 3, []uint64{5, 7}, 3, nil, false},
		{"most contradict the receiver", 3, []uint64{5, 7, 7}, 3, nil, true},
		{"all contradict the receiver", 3, []uint64{7, 7, 7}, 3, []view.Process{proc(1, 0)}, false},
		{"all contradict one of two receivers", 3, []uint64{7, 7, 7}, 2, nil, true},
		{"no majority", 3, []uint64{5, 6, 7}, 3, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ds disputes
			d := ds.about(messageID{source: 0, receiver: proc(1, 0)})
			var counting []view.Process
			for k := range tt.counting {
				counting = append(counting, proc(0, k))
			}
			for k, n := range tt.produced {
				d.reports[k] = report{protection.Divergence{Produced: n, Received: 5}, "evidence"}
			}
			if !d.open(counting) {
				t.Fatal("the dispute is not open")
			}
			odd, why, diverged := d.decide(counting, tt.receivers)
			if !slices.Equal(odd, tt.odd) || diverged != tt.diverged || (why == "") != (odd == nil) {
				t.Errorf("odd %v for reason %q, diverged %v; want odd %v, diverged %v", odd, why, diverged, tt.odd, tt.diverged)
			}
			if settled := !d.open(counting); settled != (odd != nil) {
				t.Errorf("settled: %v", settled)
			}
		})
	}
}
