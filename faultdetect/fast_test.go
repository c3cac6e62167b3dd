package faultdetect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/faultdetect/sim"
)

var fastSizes = []int{2, 3, 4, 8, 13, 32, 100}

func newFastWorld(t testing.TB, n int, seed uint64) *sim.World {
	return worldOf(t, n, faultdetect.Config{Period: simPeriod}, seed)
}

// afterCrash runs groups of n with many seeds until one member ends, and returns the number of periods
// after which each survivor knew.
func afterCrash(t *testing.T, n int, c faultdetect.Config, end func(w *sim.World, member int, at time.Duration)) (periods []float64) {
	t.Helper()
	for seed := range uint64(max(1, 64/n)) {
		w := worldOf(t, n, c, seed)
		w.RandomPhases()
		at := time.Duration(faultdetect.DBRR.Rounds(n)+10)*simPeriod + time.Duration(w.Rand.Int64N(int64(16*simPeriod)))
		end(w, w.Rand.IntN(n), at)
		w.Run(at + 20*simPeriod)
		times, err := w.Times()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range times {
			periods = append(periods, float64(d)/float64(simPeriod))
		}
	}
	return periods
}

func mean(xs []float64) (m float64) {
	for _, x := range xs {
		m += x / float64(len(xs))
	}
	return m
}

// TestF1FastDetectionIsIndependentOfGroupSize: every survivor fails a silent host within 3 periods plus the
// tolerated hang.
func TestF1FastDetectionIsIndependentOfGroupSize(t *testing.T) {
	for _, hang := range []float64{0, 2} {
		for _, n := range fastSizes {
			c := faultdetect.Config{Period: simPeriod, Hang: time.Duration(hang * float64(simPeriod))}
			got := afterCrash(t, n, c, (*sim.World).Crash)
			if m, last := mean(got), slices.Max(got); m > 2.5+hang || last > 3+hang {
				t.Errorf("n=%d, hang %v: failed after %.2f periods in the mean and %.2f at the last, want at most %.1f and %.1f", n, hang, m, last, 2.5+hang, 3+hang)
			}
		}
	}
}

// TestF1HangBeginsAtTheMissingTable: with the default period and tolerated hang, every member fails
// a silent host within 2.5 s. A shorter hang never leads to a failure (TestV3FastHasNoFalseFailures).
func TestF1HangBeginsAtTheMissingTable(t *testing.T) {
	hang := simPeriod * faultdetect.DefaultGroupHang / faultdetect.DefaultPeriod
	second := float64(time.Second) / float64(faultdetect.DefaultPeriod)
	for _, n := range fastSizes {
		got := afterCrash(t, n, faultdetect.Config{Period: simPeriod, Hang: hang}, (*sim.World).Crash)
		if m, last := mean(got)/second, slices.Max(got)/second; m > 2.3 || last > 2.5 {
			t.Errorf("n=%d: failed after %.2f s in the mean and %.2f s at the last, want at most 2.3 s and 2.5 s", n, m, last)
		} else {
			t.Logf("n=%d: %.2f s in the mean, %.2f s at the last", n, m, last)
		}
	}
}

// TestF2KilledMemberIsDetectedAtOnce: the host of the killed member resets connections. One period is less
// than the second that F2 allows.
func TestF2KilledMemberIsDetectedAtOnce(t *testing.T) {
	for _, n := range fastSizes {
		got := afterCrash(t, n, faultdetect.Config{Period: simPeriod}, (*sim.World).Kill)
		if last := slices.Max(got); last > 1 {
			t.Errorf("n=%d: failed after %.2f periods, want at most 1", n, last)
		}
	}
}

// TestF1FastDetectsASecondCrash: after a failure, tables come from other members than before.
func TestF1FastDetectsASecondCrash(t *testing.T) {
	for _, n := range []int{4, 8, 13, 32} {
		for seed := range uint64(10) {
			w := newFastWorld(t, n, seed)
			w.RandomPhases()
			first, second := 30*simPeriod, 34*simPeriod+time.Duration(w.Rand.Int64N(int64(simPeriod)))
			w.Crash(0, first)
			w.Crash(1+w.Rand.IntN(n-1), second)
			w.Run(60 * simPeriod)
			times, err := w.Times()
			if err != nil {
				t.Fatal(err)
			}
			// Times count from the first crash, so the greatest one is that of the second crash.
			if last := float64(slices.Max(times)) / float64(simPeriod); last > 5 {
				t.Errorf("%v: second failed after %.2f periods, want at most 5", w, last)
			}
		}
	}
}

// TestF3FastSurvivorsLearnOfEveryCrash crashes every set of members of small groups, at once and one
// after the other.
func TestF3FastSurvivorsLearnOfEveryCrash(t *testing.T) {
	everyCrash(5, func(n int, set uint32) { expectLearned(t, newFastWorld(t, n, uint64(set)), set) })
}

// TestV3FastHasNoFalseFailures runs groups without crashes, with a tolerated hang of two periods.
func TestV3FastHasNoFalseFailures(t *testing.T) {
	const hang = 2 * simPeriod
	tests := []struct {
		name    string
		periods int
		prepare func(*sim.World)
		silent  bool // no member may be suspected
	}{
		{"aligned", 200, func(*sim.World) {}, true},
		{"random phases", 300, (*sim.World).RandomPhases, true},
		{"5 % loss", 600, func(w *sim.World) { w.RandomPhases(); w.Loss = 0.05 }, false},
		{"slow network", 300, func(w *sim.World) { w.RandomPhases(); w.Latency = simPeriod / 3 }, false},
		{"one member hangs", 300, func(w *sim.World) { w.RandomPhases(); hangs(w, hang, 1) }, false},
		{"half of them hang", 300, func(w *sim.World) { w.RandomPhases(); hangs(w, hang, len(w.Detectors)/2) }, false},
		{"all hang at once", 300, func(w *sim.World) { w.RandomPhases(); hangs(w, 20*simPeriod, len(w.Detectors)) }, false},
		{"late start", 300, lateStart, false},
		{"clocks that drift", 400, drift, false},
		{"one-way cuts", 300, oneWayCuts, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 8, 13} {
				w := worldOf(t, n, faultdetect.Config{Period: simPeriod, Hang: hang}, uint64(n))
				tt.prepare(w)
				w.Run(time.Duration(tt.periods*8/max(8, n)) * simPeriod)
				if slowest(t, w); tt.silent && w.Doubts > 0 {
					t.Errorf("%v: %d suspicions of members that gossip, want none", w, w.Doubts)
				}
			}
		})
	}
}

// hangs repeatedly stops some members together, for at most the given time.
func hangs(w *sim.World, most time.Duration, members int) {
	for from := 10 * simPeriod; from < 300*simPeriod; {
		until := from + time.Duration(w.Rand.Int64N(int64(most)))
		for _, i := range w.Rand.Perm(len(w.Detectors))[:members] {
			w.Pause(i, from, until)
		}
		from = until + 10*simPeriod
	}
}

// oneWayCuts drops all messages from each member to the next one. In a group of two, that member would
// be silent.
func oneWayCuts(w *sim.World) {
	n := len(w.Detectors)
	w.Cut = func(from, to int) bool { return n > 2 && from%2 == 0 && to == (from+1)%n }
}

// TestV3MemberThatReceivesNothingAffectsOnlyItself cuts all links to a member, but none from it. Gossip
// alone makes it fail the others, whose last news was up to ⌈log₂ n⌉ periods old. The others continue; the
// member is silent once it has failed all of them.
func TestV3MemberThatReceivesNothingAffectsOnlyItself(t *testing.T) {
	for _, n := range []int{4, 8, 16} {
		w := newFastWorld(t, n, 1)
		w.RandomPhases()
		const cut = 30 * simPeriod
		w.Cut = func(_, to int) bool { return to == 0 && w.Now > cut }
		w.Run(80 * simPeriod)
		for at, when := range w.Failed {
			least := cut + time.Duration(faultdetect.DBRR.Rounds(n)-faultdetect.HalfRounds(n))*simPeriod
			if at.Observer != 0 && at.Member != 0 || when < least {
				t.Errorf("n=%d: member %d failed at %d after %v, want only at 0 and by gossip", n, at.Member, at.Observer, when-cut)
			}
		}
	}
}

// TestV3AccusedMembersThatAnswerNeverFail: a lying member accuses all others in every period.
func TestV3AccusedMembersThatAnswerNeverFail(t *testing.T) {
	const n = 8
	w := newFastWorld(t, n, 1)
	w.RandomPhases()
	for p := range 200 {
		w.At(time.Duration(10+p)*simPeriod+simPeriod/2, func() {
			about := 1 + p%(n-1)
			for to := 1; to < n; to++ {
				if to != about {
					w.Send(faultdetect.Message{From: 0, To: to, Kind: faultdetect.Accuse, Heartbeat: w.Detectors[0].Heartbeat(), About: about, Reach: n - 1})
				}
			}
		})
	}
	w.Run(220 * simPeriod)
	slowest(t, w)
}

// TestRandomFaults combines all tolerated faults, and crashes some members.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(40) {
		mode := faultdetect.Mode(seed % 2)
		pick := worldOf(t, 1, faultdetect.Config{Period: simPeriod}, seed).Rand
		n := 2 + pick.IntN(15)
		w := worldOf(t, n, faultdetect.Config{Period: simPeriod, Hang: 2 * simPeriod, Mode: mode}, seed)
		w.RandomPhases()
		w.Loss = 0.05 * pick.Float64()
		w.Latency = 1 + time.Duration(pick.Int64N(int64(simPeriod/8)))
		hangs(w, 2*simPeriod, pick.IntN(2))
		for i := range pick.IntN(n) {
			at := time.Duration(20+pick.IntN(60)) * simPeriod
			if pick.IntN(2) == 0 {
				w.Kill(i, at)
			} else {
				w.Crash(i, at)
			}
		}
		w.Run(140 * simPeriod)
		if _, err := w.Times(); err != nil {
			t.Errorf("%v mode: %v", mode, err)
		}
	}
}

// TestF1SilentMemberThatNeverStartedIsFailed: the caller reports how long the member has been silent.
// This time counts as part of the tolerated hang, and the start grace does not apply.
func TestF1SilentMemberThatNeverStartedIsFailed(t *testing.T) {
	const hang = 8 * simPeriod
	for _, n := range fastSizes {
		for _, silent := range []bool{true, false} {
			w := worldOf(t, n, faultdetect.Config{Period: simPeriod, Hang: hang}, uint64(n))
			lost := n - 1
			if silent {
				w.Crash(lost, 1)
			}
			w.Silent(0, lost, hang, hang)
			w.Run(hang + 2*simPeriod)
			if _, failed := w.Failed[sim.Pair{Observer: 0, Member: lost}]; failed != silent {
				t.Errorf("n=%d: failed: %v two periods after the report, want %v", n, failed, silent)
			}
		}
	}
}

// TestF1SilentShortensTheSuspicion: the member is already suspect because its table is missing.
func TestF1SilentShortensTheSuspicion(t *testing.T) {
	const hang, crash = 8 * simPeriod, 30 * simPeriod
	for _, n := range fastSizes {
		w := worldOf(t, n, faultdetect.Config{Period: simPeriod, Hang: hang}, uint64(n))
		w.Crash(n-1, crash)
		for i := range n - 1 {
			w.Silent(i, n-1, crash+4*simPeriod, hang)
		}
		w.Run(crash + 6*simPeriod)
		if _, failed := w.Failed[sim.Pair{Observer: 0, Member: n - 1}]; !failed {
			t.Errorf("n=%d: not failed two periods after the report", n)
		}
	}
}
