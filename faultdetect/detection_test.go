package faultdetect_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/faultdetect/sim"
)

const (
	simPeriod  = faultdetect.DefaultPeriod
	startGrace = 20 // periods
)

// newWorld returns a group of detectors as in P2P-MPI.
func newWorld(t testing.TB, n int, seed uint64) *sim.World {
	return worldOf(t, n, faultdetect.Config{Period: simPeriod, Mode: faultdetect.Gossip}, seed)
}

func worldOf(t testing.TB, n int, c faultdetect.Config, seed uint64) *sim.World {
	t.Helper()
	w, err := sim.New(n, c, seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// slowest returns how many periods after its crash the last survivor had failed the last crashed member.
// The test fails if a survivor was failed, or if a crashed member was not failed.
func slowest(t testing.TB, w *sim.World) float64 {
	t.Helper()
	times, err := w.Times()
	if err != nil {
		t.Fatal(err)
	}
	if len(times) == 0 {
		return 0
	}
	return float64(slices.Max(times)) / float64(w.Period)
}

var sizes = []int{2, 3, 4, 7, 8, 16, 32, 64, 128}

// TestF1SilentMemberFailsEverywhere crashes a member at a random moment. Every survivor must have failed
// it within 2⌈log₂ n⌉ + 1 periods of its last heartbeat, plus the phase of the observer's own period. The
// last heartbeat was up to one period before the crash.
func TestF1SilentMemberFailsEverywhere(t *testing.T) {
	for _, phases := range []string{"aligned", "random phases"} {
		t.Run(phases, func(t *testing.T) {
			for _, n := range sizes {
				worst := 0.0
				for seed := range uint64(max(1, 16/n)) {
					w := newWorld(t, n, seed)
					if phases != "aligned" {
						w.RandomPhases()
					}
					w.Crash(w.Rand.IntN(n), 15*simPeriod+time.Duration(w.Rand.Int64N(int64(10*simPeriod))))
					w.Run(time.Duration(30+faultdetect.DBRR.Rounds(n)) * simPeriod)
					worst = max(worst, slowest(t, w))
				}
				if bound := float64(faultdetect.DBRR.Rounds(n) + 2); worst > bound {
					t.Errorf("n=%d: failed %.2f periods after the crash, want at most %.0f", n, worst, bound)
				}
				t.Logf("n=%3d: 2⌈log₂ n⌉ = %2d, failed everywhere after %.2f periods", n, faultdetect.DBRR.Rounds(n), worst)
			}
		})
	}
}

// TestF1SilenceSoonAfterTheStart crashes a member as soon as all have heard of it. The start grace does
// not apply to a member that has started.
func TestF1SilenceSoonAfterTheStart(t *testing.T) {
	for _, n := range sizes {
		w := newWorld(t, n, uint64(n))
		w.Crash(w.Rand.IntN(n), time.Duration(faultdetect.HalfRounds(n)+1)*simPeriod)
		w.Run(time.Duration(3*faultdetect.DBRR.Rounds(n)+startGrace) * simPeriod)
		if worst := slowest(t, w); worst > float64(faultdetect.DBRR.Rounds(n)+2) {
			t.Errorf("n=%d: failed %.2f periods after the crash, want at most %d", n, worst, faultdetect.DBRR.Rounds(n)+2)
		}
	}
}

// TestF3SurvivorsLearnOfEveryCrash crashes every set of members of small groups, at once and one after
// the other.
func TestF3SurvivorsLearnOfEveryCrash(t *testing.T) {
	everyCrash(6, func(n int, set uint32) {
		w := newWorld(t, n, uint64(set))
		expectLearned(t, w, set)
		settled := w.Doubts
		w.Run(60 * simPeriod)
		if w.Doubts != settled {
			t.Fatalf("%v, crashed %0*b: survivors still check each other", w, n, set)
		}
	})
}

// everyCrash calls f with every set of members that leaves a survivor, in groups up to a size.
func everyCrash(most int, f func(n int, set uint32)) {
	for n := 2; n <= most; n++ {
		for set := uint32(1); set < 1<<n-1; set++ {
			f(n, set)
		}
	}
}

// expectLearned crashes a set of members and runs w until the survivors must know.
func expectLearned(t *testing.T, w *sim.World, set uint32) {
	t.Helper()
	w.RandomPhases()
	n := len(w.Detectors)
	for i := range n {
		if set>>i&1 == 1 {
			w.Crash(i, 12*simPeriod+time.Duration(set%3)*time.Duration(i)*simPeriod)
		}
	}
	w.Run(45 * simPeriod)
	if worst := slowest(t, w); worst > float64(faultdetect.DBRR.Rounds(n)+2) {
		t.Fatalf("%v, crashed %0*b: failed after %.2f periods, want at most %d", w, n, set, worst, faultdetect.DBRR.Rounds(n)+2)
	}
}

// TestV3NoFalseFailure runs groups without crashes for a long time.
func TestV3NoFalseFailure(t *testing.T) {
	tests := []struct {
		name    string
		periods int
		prepare func(*sim.World)
		silent  bool // no member may be suspected
	}{
		{"aligned", 500, func(*sim.World) {}, true},
		{"random phases", 500, (*sim.World).RandomPhases, true},
		{"5 % loss", 1000, func(w *sim.World) { w.RandomPhases(); w.Loss = 0.05 }, false},
		{"slow network", 500, func(w *sim.World) { w.RandomPhases(); w.Latency = simPeriod / 3 }, false},
		{"one member pauses", 800, pauseOne, false},
		{"many members pause", 800, pauseMany, false},
		{"late start", 500, lateStart, false},
		{"clocks that drift", 800, drift, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 8, 13} {
				w := newWorld(t, n, uint64(n))
				tt.prepare(w)
				w.Run(time.Duration(tt.periods*8/max(8, n)) * simPeriod)
				if slowest(t, w); tt.silent && w.Doubts > 0 {
					t.Errorf("%v: %d suspicions of members that gossip, want none", w, w.Doubts)
				}
				t.Logf("n=%2d: %d suspicions in %d periods", n, w.Doubts, w.Now/simPeriod)
			}
		})
	}
}

// pauseOne stops one member at a time, for as long as is tolerated.
func pauseOne(w *sim.World) {
	w.RandomPhases()
	turn := time.Duration(faultdetect.DBRR.Rounds(len(w.Detectors))+1) * simPeriod
	longest := turn - 2*simPeriod - 2*w.Latency
	for from := 5 * simPeriod; from < 800*simPeriod; {
		i := w.Rand.IntN(len(w.Detectors))
		until := from + time.Duration(w.Rand.Int64N(int64(max(1, longest))))
		w.Pause(i, from, until)
		from = until + turn
	}
}

// pauseMany stops members independently, so that news of a paused member may be delayed by another one,
// for half as long.
func pauseMany(w *sim.World) {
	w.RandomPhases()
	turn := time.Duration(faultdetect.DBRR.Rounds(len(w.Detectors))+1) * simPeriod
	for i := range w.Detectors {
		for from := 5 * simPeriod; from < 800*simPeriod; {
			until := from + time.Duration(w.Rand.Int64N(int64(max(1, turn/2-simPeriod))))
			w.Pause(i, from, until)
			from = until + turn + time.Duration(w.Rand.Int64N(int64(60*simPeriod)))
		}
	}
}

// lateStart delays start messages by as much as is tolerated.
func lateStart(w *sim.World) {
	for i := range w.Start {
		w.Start[i] = time.Duration(w.Rand.Int64N(int64(startGrace * simPeriod)))
	}
}

// drift makes clocks deviate by up to 1 in 200: 4 periods here.
func drift(w *sim.World) {
	w.RandomPhases()
	for i := range w.Drift {
		w.Drift[i] = (rand.New(rand.NewPCG(w.Seed, uint64(i))).Float64() - 0.5) / 200
	}
}

// TestDriftingClocksStayAligned makes clocks deviate by up to 10 periods. Without catching up, members
// would ask each other all the time.
func TestDriftingClocksStayAligned(t *testing.T) {
	w := newWorld(t, 8, 8)
	drift(w)
	w.Run(2000 * simPeriod)
	least, most := w.Detectors[0].Heartbeat(), uint64(0)
	for _, d := range w.Detectors {
		least, most = min(least, d.Heartbeat()), max(most, d.Heartbeat())
	}
	if most-least > 2 || w.Doubts > 20 {
		t.Errorf("%v: heartbeats %d to %d, %d suspicions; want at most 2 apart and few suspicions", w, least, most, w.Doubts)
	}
}

// TestV3StoppedObserverFailsNoMember stops a member for longer than tolerated. The others may fail the
// stopped member, which must not fail any of them.
func TestV3StoppedObserverFailsNoMember(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16} {
		w := newWorld(t, n, 1)
		w.Pause(0, 20*simPeriod+simPeriod/3, 60*simPeriod)
		w.Run(61 * simPeriod)
		for j := 1; j < n; j++ {
			if _, failed := w.Failed[sim.Pair{Observer: 0, Member: j}]; failed {
				t.Errorf("n=%d: member %d failed at the stopped member", n, j)
			}
		}
	}
}

// BenchmarkSilenceToFailed reports the time from a crash until every survivor knows of it, in periods.
func BenchmarkSilenceToFailed(b *testing.B) {
	var worst float64
	for i := range b.N {
		w := newWorld(b, 64, uint64(i))
		w.RandomPhases()
		w.Crash(0, 20*simPeriod)
		w.Run(40 * simPeriod)
		worst = max(worst, slowest(b, w))
	}
	b.ReportMetric(worst, "periods")
}
