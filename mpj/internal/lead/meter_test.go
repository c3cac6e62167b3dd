package lead

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"testing"
	"time"
)

// tickInterval is the interval of ticks in the engine.
const tickInterval = 10 * time.Millisecond

// A race is a replica and its master, which both take the steps of a program.
type race struct {
	replica Meter
	master  history
	reports []time.Duration // times at which the replica reported that it is ahead
	// away reports whether the master's machine is stopped.
	away func(at time.Duration) bool
}

const (
	raceTick  = 100 * time.Microsecond // time unit in which all due events happen
	raceRound = 3 * raceTick           // round-trip time of a message
	// masterClock is the lead of the master's clock over the replica's.
	masterClock = time.Hour
)

// run lets time pass. In each tick, the two processes take the given numbers of steps.
func (r *race) run(lasts time.Duration, replica, master func(at time.Duration) int) {
	var question uint64
	var answer Answer
	var arrives, returns time.Duration
	for at := raceTick; at <= lasts; at += raceTick {
		for range replica(at) {
			r.replica.Step(at)
		}
		away := r.away != nil && r.away(at)
		if !away {
			for range master(at) {
				r.master.step(at + masterClock)
			}
		}
		if question != 0 && returns == 0 && at >= arrives && !away {
			answer, returns = Answer{at + masterClock, r.master.appendTo(nil)}, at+raceRound/3
		}
		if returns != 0 && at >= returns {
			if r.replica.Receive(question, answer, at) {
				r.reports = append(r.reports, at)
			}
			question, returns = 0, 0
		}
		if at%(tickInterval+raceTick) == 0 { // timers are late
			if q := r.replica.Tick(at); q != 0 {
				question, arrives, returns = q, at+raceRound*2/3, 0
			}
		}
	}
}

func newRace() race { return race{replica: NewMeter()} }

// every takes one step in each period n, starting with time n.
func every(n, offset time.Duration) func(time.Duration) int {
	return func(at time.Duration) int {
		if at >= n && at%n == offset {
			return 1
		}
		return 0
	}
}

func TestReplicaThatIsAheadReportsIt(t *testing.T) {
	for _, tt := range []struct {
		name      string
		step, lag time.Duration
		within    time.Duration
	}{
		{"by most of each long step", 100 * time.Millisecond, 90 * time.Millisecond, time.Second},
		{"by half of each long step", 100 * time.Millisecond, 50 * time.Millisecond, 3 * time.Second},
		{"by most of each short step", 2 * time.Millisecond, 1800 * time.Microsecond, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRace()
			r.run(20*time.Second, every(tt.step, 0), every(tt.step, tt.lag))
			if len(r.reports) == 0 || r.reports[0] > tt.within {
				t.Fatalf("the replica reported at %v, want within %v", r.reports, tt.within)
			}
			for i := 2; i < len(r.reports); i++ {
				if r.reports[i]-r.reports[i-1] < 3*(r.reports[i-1]-r.reports[i-2])/2 {
					t.Errorf("the replica reported at %v: the intervals do not double", r.reports)
				}
			}
		})
	}
}

// TestStoppedMasterIsDetected simulates a master that, whenever it resumes, takes all pending steps
// before it answers.
func TestStoppedMasterIsDetected(t *testing.T) {
	const cycle = 10 * time.Millisecond
	r := newRace()
	r.away = func(at time.Duration) bool { return at%cycle < cycle*9/10 }
	taken := uint64(0)
	// Each step begins when a message arrives, at any time within the cycle.
	r.run(5*time.Second, every(cycle, 3*time.Millisecond), func(time.Duration) int {
		due := r.replica.Steps() - taken
		taken += due
		return int(due)
	})
	if len(r.reports) == 0 || r.reports[0] > time.Second {
		t.Errorf("the replica reported at %v, want within 1s", r.reports)
	}
}

// TestReplicasThatAlternateAreLevel simulates two replicas that share a processor and so are ahead
// of each other in turn. By chance, one of them may be ahead more often for a while.
func TestReplicasThatAlternateAreLevel(t *testing.T) {
	reports, seed := 0, rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		// In a round, each replica has a turn of the same length, in random order.
		r, ends, turn, first := newRace(), time.Duration(0), tickInterval, false
		inTurn := func(own bool) func(time.Duration) int {
			return func(at time.Duration) int {
				if at >= ends {
					turn, first = tickInterval*time.Duration(1+rng.IntN(2)), rng.IntN(2) == 0
					ends = at + 2*turn
				}
				if at%time.Millisecond == 0 && (ends-at > turn) == (own == first) {
					return 2
				}
				return 0
			}
		}
		r.run(30*time.Second, inTurn(false), inTurn(true))
		reports += len(r.reports)
	}
	if reports > 1 {
		t.Errorf("seed %d: reported %d times in 10 jobs of 30 s", seed, reports)
	}
}

// TestLevelReplicasSeldomReportALead simulates replicas that occasionally pause and then catch up.
// Long pauses that cluster by chance may look like a slow machine.
func TestLevelReplicasSeldomReportALead(t *testing.T) {
	for _, tt := range []struct {
		name        string
		every       int // mean interval of pauses in steps of 1 ms
		least, most time.Duration
		reports     int // most reports in total
	}{
		{"pauses", 1000, 0, 100 * time.Millisecond, 0},
		{"long pauses", 4000, 100 * time.Millisecond, 300 * time.Millisecond, 2},
		{"garbage collection", 100, 2 * time.Millisecond, 20 * time.Millisecond, 0},
		{"shared processors", 10, 0, 10 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 1))
			noisy := func() func(time.Duration) int {
				held, owed := time.Duration(0), 0
				return func(at time.Duration) int {
					if at%time.Millisecond != 0 {
						return 0
					}
					owed++
					if held -= time.Millisecond; held > 0 {
						return 0
					}
					if rng.IntN(tt.every) == 0 {
						held = tt.least + time.Duration(rng.Int64N(int64(tt.most-tt.least)))
					}
					n := owed
					owed = 0
					return n
				}
			}
			reports := 0
			for range 5 {
				r := newRace()
				r.run(30*time.Second, noisy(), noisy())
				reports += len(r.reports)
			}
			if reports > tt.reports {
				t.Fatalf("seed %d: reported %d times in 5 jobs of 30 s, want at most %d", seed, reports, tt.reports)
			}
		})
	}
}

func TestClearSpells(t *testing.T) {
	turns := func(n int, first, then time.Duration) (s spells) {
		for range n {
			s.take(cmp.Compare(first, 0), first.Abs())
			s.take(level, time.Millisecond)
			s.take(cmp.Compare(then, 0), then.Abs())
			s.take(level, time.Millisecond)
		}
		return s
	}
	for _, tt := range []struct {
		name   string
		spells spells
		want   bool
	}{
		{"none", spells{}, false},
		{"8 short spells of the replica", turns(8, time.Millisecond, 2*time.Millisecond), false},
		{"9 short spells of the replica", turns(9, time.Millisecond, 2*time.Millisecond), true},
		{"9 short spells of the master", turns(9, -time.Millisecond, -2*time.Millisecond), false},
		{"equal spells in turn", turns(100, 3*time.Millisecond, -3*time.Millisecond), false},
		{"spells in turn, shorter ones of the master", turns(100, 3*time.Millisecond, -time.Millisecond), true},
		{"one long spell", turns(1, time.Second, 0), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.spells.clear(clarity * clarity); got != tt.want {
				t.Errorf("%v: clear %v, want %v", tt.spells, got, tt.want)
			}
		})
	}
}

func TestLateAnswerShowsNoLead(t *testing.T) {
	m, master := NewMeter(), history{}
	at := time.Second
	for i := range 100 {
		m.Step(at)
		master.step(at)
		q := m.Tick(at)
		if q == 0 {
			t.Fatal("the replica did not ask the master")
		}
		answered := at
		if at += time.Millisecond; i%10 != 0 {
			at += 300 * time.Millisecond // answers are slow
		}
		if m.Receive(q, Answer{answered + time.Millisecond/2, master.appendTo(nil)}, at) || m.lead > 0 {
			t.Fatalf("the replica has a lead of %v over a level master", m.lead)
		}
		m.known = 0 // make the replica ask although they are level
		at += tickInterval
	}
}

func TestMasterDelayedOnceIsNotSlow(t *testing.T) {
	r := newRace()
	r.away = func(at time.Duration) bool { return at > time.Second && at < 2*time.Second }
	taken := uint64(0)
	r.run(3*time.Second, every(10*time.Millisecond, 0), func(time.Duration) int {
		due := r.replica.Steps() - taken
		taken += due
		return int(due)
	})
	if len(r.reports) > 0 {
		t.Errorf("the replica reported a lead at %v", r.reports)
	}
}

func TestLostAnswerIsAskedForAgain(t *testing.T) {
	m := NewMeter()
	m.Step(time.Second)
	asked := 0
	for at := time.Second; at < 6*time.Second; at += tickInterval {
		if m.Tick(at) != 0 {
			asked++
		}
	}
	if asked != 5 {
		t.Errorf("the replica asked %d times in 5 s, want once in %v", asked, answerTimeout)
	}
	if m.Receive(m.question-1, Answer{marks: make([]mark, 1)}, 6*time.Second); m.answered {
		t.Error("an answer to an earlier question counts")
	}
	if m.Receive(m.question, Answer{marks: make([]mark, 1)}, 6*time.Second); !m.answered {
		t.Error("the answer does not count")
	}
	m.answered = false
	if m.Receive(m.question, Answer{marks: make([]mark, 1)}, 6*time.Second); m.answered {
		t.Error("a second answer counts")
	}
}

func TestReplacedMasterNeedsALargerLead(t *testing.T) {
	m := NewMeter()
	m.MasterChanged(true)
	if m.need != 2*minLead {
		t.Errorf("the necessary lead is %v, want %v", m.need, 2*minLead)
	}
	for range 100 {
		m.MasterChanged(true)
	}
	if m.need != maxLead {
		t.Errorf("the necessary lead is %v, want at most %v", m.need, maxLead)
	}
}

// TestResumedProgramHasTheStepsOfItsCheckpoint checks that earlier marks do not survive, because they
// would show the process behind its master.
func TestResumedProgramHasTheStepsOfItsCheckpoint(t *testing.T) {
	m := NewMeter()
	m.Step(time.Second)
	m.Resume(7, time.Minute)
	if got := m.Answer(time.Hour).marks; len(got) != 1 || got[0] != (mark{7, time.Minute}) {
		t.Errorf("the history is %v, want 7 steps at the time of the restoration", got)
	}
}

func TestHistoryRecordsWhenStepsWereTaken(t *testing.T) {
	var h history
	if got := h.appendTo(nil); len(got) != 1 || got[0] != (mark{}) {
		t.Errorf("the history has marks before the first step: %v", got)
	}
	const each, steps = markGap / 2, 10 * maxMarks
	for i := range steps {
		h.step(time.Duration(i+1) * each)
	}
	got := h.appendTo(nil)
	if len(got) != maxMarks || got[len(got)-1].steps != steps {
		t.Fatalf("the history has %d marks, the last of %v", len(got), got[len(got)-1])
	}
	for i, m := range got {
		if m.at != time.Duration(m.steps)*each || i > 1 && m.at-got[i-1].at > markGap {
			t.Errorf("mark %d: %v after %v", i, m, got[i-1])
		}
	}
}

func TestCompare(t *testing.T) {
	one := []mark{{0, 0}, {1, 10}, {2, 20}, {3, 30}}
	for _, tt := range []struct {
		name               string
		other              []mark
		from, to           time.Duration
		wantMore, wantLess time.Duration
	}{
		{"level", one, 0, 50, 0, 0},
		{"ahead by a part of each step", []mark{{0, 0}, {1, 14}, {2, 24}, {3, 34}}, 0, 50, 12, 0},
		{"ahead by many steps", []mark{{0, 0}}, 0, 50, 40, 0},
		{"behind", []mark{{7, 0}}, 5, 50, 0, 45},
		{"each ahead in turn", []mark{{0, 0}, {2, 15}, {3, 35}}, 0, 50, 10, 5},
		{"a part of the time", []mark{{0, 0}, {1, 14}}, 12, 22, 4, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var more, less, all time.Duration
			for leader, lasts := range compare(one, tt.other, tt.from, tt.to) {
				switch all += lasts; leader {
				case replicaAhead:
					more += lasts
				case masterAhead:
					less += lasts
				}
			}
			if more != tt.wantMore || less != tt.wantLess || all != tt.to-tt.from {
				t.Errorf("got %d more and %d less of %d, want %d and %d", more, less, all, tt.wantMore, tt.wantLess)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(Answer{time.Second, []mark{{3, time.Millisecond}, {4, time.Second}}}.Encode())
	f.Add(Answer{marks: make([]mark, maxMarks)}.Encode())
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAnswer(b)
		if err != nil {
			return
		}
		if !bytes.Equal(a.Encode(), b) {
			t.Errorf("%v encodes to %x, decoded from %x", a, a.Encode(), b)
		}
		m := NewMeter()
		m.Step(time.Second)
		for at := time.Second; at < time.Minute; at += time.Second {
			m.Receive(m.Tick(at), a, at+time.Millisecond)
			if m.lead < 0 || m.lead > m.need {
				t.Fatalf("the lead is %v", m.lead)
			}
		}
	})
}
