package faultdetect

import (
	"math/rand/v2"
	"testing"
	"time"
)

var sizes = []int{2, 3, 4, 7, 8, 16, 32, 64, 128, 192}

// TestF1SilentMemberFailsEverywhere crashes a member at a random moment: every
// survivor must have failed it within 2⌈log₂ n⌉ + 1 periods of its last
// heartbeat, which was up to one period before the crash, plus the phase of
// the observer's own period.
func TestF1SilentMemberFailsEverywhere(t *testing.T) {
	for _, phases := range []string{"aligned", "random phases"} {
		t.Run(phases, func(t *testing.T) {
			for _, n := range sizes {
				worst := 0.0
				for seed := range uint64(max(1, 16/n)) {
					w := newWorld(t, n, seed)
					if phases != "aligned" {
						w.randomPhases()
					}
					w.crash[w.rng.IntN(n)] = 15*simPeriod + time.Duration(w.rng.Int64N(int64(10*simPeriod)))
					w.run(time.Duration(30+Rounds(n)) * simPeriod)
					worst = max(worst, w.slowest())
				}
				if bound := float64(Rounds(n) + 2); worst > bound {
					t.Errorf("n=%d: failed %.2f periods after the crash, want at most %.0f", n, worst, bound)
				}
				t.Logf("n=%3d: 2⌈log₂ n⌉ = %2d, failed everywhere after %.2f periods", n, Rounds(n), worst)
			}
		})
	}
}

// TestF1SilentSoonAfterTheStart crashes a member as soon as all have heard of it:
// the time that late members are given to start is not for one that has started.
func TestF1SilentSoonAfterTheStart(t *testing.T) {
	for _, n := range sizes {
		w := newWorld(t, n, uint64(n))
		w.crash[w.rng.IntN(n)] = time.Duration(HalfRounds(n)+1) * simPeriod
		w.run(time.Duration(3*Rounds(n)+startGrace) * simPeriod)
		if worst := w.slowest(); worst > float64(Rounds(n)+2) {
			t.Errorf("n=%d: failed %.2f periods after the crash, want at most %d", n, worst, Rounds(n)+2)
		}
	}
}

// TestF3SurvivorsLearnOfEveryCrash crashes every set of members of small
// groups, at once and one after the other.
func TestF3SurvivorsLearnOfEveryCrash(t *testing.T) {
	for n := 2; n <= 7; n++ {
		for set := uint32(1); set < 1<<n-1; set++ {
			w := newWorld(t, n, uint64(set))
			w.randomPhases()
			for i := range n {
				if set>>i&1 == 1 {
					w.crash[i] = 12*simPeriod + time.Duration(set%3)*time.Duration(i)*simPeriod
				}
			}
			w.run(45 * simPeriod)
			if worst := w.slowest(); worst > float64(Rounds(n)+2) {
				t.Fatalf("%v, crashed %0*b: failed after %.2f periods, want at most %d", w, n, set, worst, Rounds(n)+2)
			}
			settled := w.pings
			w.run(60 * simPeriod)
			if w.pings != settled {
				t.Fatalf("%v, crashed %0*b: survivors still question each other", w, n, set)
			}
		}
	}
}

// TestV3NoFalseFailure runs groups in which nobody crashes for a long time.
func TestV3NoFalseFailure(t *testing.T) {
	tests := []struct {
		name    string
		periods int
		prepare func(*world)
		silent  bool // nobody should even be suspected
	}{
		{"aligned", 500, func(*world) {}, true},
		{"random phases", 500, (*world).randomPhases, true},
		{"5 % loss", 2000, func(w *world) { w.randomPhases(); w.loss = 0.05 }, false},
		{"slow network", 500, func(w *world) { w.randomPhases(); w.latency = simPeriod / 3 }, false},
		{"one pauses", 800, pauseOne, false},
		{"many pause", 800, pauseMany, false},
		{"late start", 500, lateStart, false},
		{"clocks that drift", 800, drift, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 8, 13} {
				w := newWorld(t, n, uint64(n))
				tt.prepare(w)
				w.run(time.Duration(tt.periods*8/max(8, n)) * simPeriod)
				if w.slowest(); tt.silent && w.pings > 0 {
					t.Errorf("%v: %d questions to members that gossip, want none", w, w.pings)
				}
				t.Logf("n=%2d: %d questions in %d periods", n, w.pings, w.now/simPeriod)
			}
		})
	}
}

// pauseOne stops one member at a time, for as long as is tolerated.
func pauseOne(w *world) {
	w.randomPhases()
	turn := time.Duration(Rounds(len(w.detectors))+1) * simPeriod
	longest := turn - 2*simPeriod - 2*w.latency
	for from := 5 * simPeriod; from < 800*simPeriod; {
		i := w.rng.IntN(len(w.detectors))
		until := from + time.Duration(w.rng.Int64N(int64(max(1, longest))))
		w.pauses[i] = append(w.pauses[i], from, until)
		from = until + turn
	}
}

// pauseMany stops members without regard to each other, so that news of one
// that pauses may be held up by another that does; for half as long.
func pauseMany(w *world) {
	w.randomPhases()
	turn := time.Duration(Rounds(len(w.detectors))+1) * simPeriod
	for i := range w.detectors {
		for from := 5 * simPeriod; from < 800*simPeriod; {
			until := from + time.Duration(w.rng.Int64N(int64(max(1, turn/2-simPeriod))))
			w.pauses[i] = append(w.pauses[i], from, until)
			from = until + turn + time.Duration(w.rng.Int64N(int64(60*simPeriod)))
		}
	}
}

// lateStart lets start messages arrive as far apart as is provided for.
func lateStart(w *world) {
	for i := range w.start {
		w.start[i] = time.Duration(w.rng.Int64N(int64(startGrace * simPeriod)))
	}
}

// drift lets clocks run up to 1 in 200 apart: 4 periods here.
func drift(w *world) {
	w.randomPhases()
	for i := range w.drift {
		w.drift[i] = (rand.New(rand.NewPCG(w.seed, uint64(i))).Float64() - 0.5) / 200
	}
}

// TestDriftingClocksStayAligned lets clocks come up to 10 periods apart.
// Without catching up, members would question each other all the time.
func TestDriftingClocksStayAligned(t *testing.T) {
	w := newWorld(t, 8, 8)
	drift(w)
	w.run(2000 * simPeriod)
	least, most := w.detectors[0].Heartbeat(), uint64(0)
	for _, d := range w.detectors {
		least, most = min(least, d.Heartbeat()), max(most, d.Heartbeat())
	}
	if most-least > 2 || w.pings > 20 {
		t.Errorf("%v: heartbeats %d to %d, %d questions; want at most 2 apart and few questions", w, least, most, w.pings)
	}
}

// TestV3ObserverThatWasStoppedFailsNobody stops a member for longer than anyone
// is tolerated. The others may fail it; it must not fail them.
func TestV3ObserverThatWasStoppedFailsNobody(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16} {
		w := newWorld(t, n, 1)
		w.pauses[0] = []time.Duration{20*simPeriod + simPeriod/3, 60 * simPeriod}
		w.run(61 * simPeriod)
		for j := 1; j < n; j++ {
			if _, failed := w.failed[[2]int{0, j}]; failed {
				t.Errorf("n=%d: member %d failed at the one that was stopped", n, j)
			}
		}
	}
}

// BenchmarkSilenceToFailed reports the time from a crash until every survivor
// knows, in periods.
func BenchmarkSilenceToFailed(b *testing.B) {
	var worst float64
	for i := range b.N {
		w := newWorld(&testing.T{}, 64, uint64(i))
		w.randomPhases()
		w.crash[0] = 20 * simPeriod
		w.run(40 * simPeriod)
		worst = max(worst, w.slowest())
	}
	b.ReportMetric(worst, "periods")
}
