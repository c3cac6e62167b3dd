package engine

import (
	"math/rand/v2"
	"testing"
)

// A race is a replica and its master, both of which go through the steps of a
// program; it yields when the replica says that it is ahead.
type race struct {
	pace   pace
	master uint64
	said   []int // ticks
}

// run lets some ticks pass. In each, the two take as many steps as they say, and the
// master answers what it was asked before.
func (r *race) run(ticks int, replica, master func(tick int) int) {
	for t := range ticks {
		r.pace.steps += uint64(replica(t))
		asked := r.pace.tick()
		r.master += uint64(master(t))
		if asked && r.pace.hear(r.master) {
			r.said = append(r.said, t)
		}
	}
}

func every(n, offset int) func(int) int {
	return func(tick int) int {
		if tick%n == offset {
			return 1
		}
		return 0
	}
}

func TestReplicaThatIsAheadSaysSo(t *testing.T) {
	r := race{pace: newPace()}
	r.run(1000, every(10, 0), every(10, 9)) // each step takes the master nine ticks more
	if len(r.said) == 0 || r.said[0] > 150 {
		t.Errorf("said at ticks %v, want within 150", r.said)
	}
	for i := 2; i < len(r.said); i++ {
		if r.said[i]-r.said[i-1] < 3*(r.said[i-1]-r.said[i-2])/2 {
			t.Errorf("said at ticks %v: the time between does not double", r.said)
		}
	}
}

// A master that is slow waits for another one that is, too: then the replica is ahead
// for some of the time only.
func TestReplicaThatIsAheadNowAndThenSaysSo(t *testing.T) {
	r := race{pace: newPace()}
	r.run(1000, every(10, 0), every(10, 4))
	if len(r.said) == 0 || r.said[0] > 500 {
		t.Errorf("said at ticks %v, want within 500", r.said)
	}
}

// Two that share a processor are ahead of each other in turn. Chance may favour one
// for a while.
func TestReplicasThatTakeTurnsAreLevel(t *testing.T) {
	said, seed := 0, rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		// In a round each has a turn of the same length; who is first is left to chance.
		r, at, turn, first := race{pace: newPace()}, 0, 1, false
		inTurn := func(own bool) func(int) int {
			return func(int) int {
				if !own {
					if at++; at > 2*turn {
						at, turn, first = 1, 1+rng.IntN(2), rng.IntN(2) == 0
					}
				}
				if (at <= turn) == (own == first) {
					return 2
				}
				return 0
			}
		}
		r.run(20000, inTurn(false), inTurn(true))
		said += len(r.said)
	}
	if said > 5 {
		t.Errorf("seed %d: said %d times in 50 jobs of 200 s", seed, said)
	}
}

func TestLevelReplicasNeverSayThatTheyAreAhead(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	// Each is sometimes held up for up to 15 ticks, and makes good for that.
	noisy := func() func(int) int {
		held, owed := 0, 0
		return func(int) int {
			owed++
			if held--; held > 0 {
				return 0
			}
			if rng.IntN(100) == 0 {
				held = rng.IntN(15)
			}
			n := owed
			owed = 0
			return n
		}
	}
	for range 50 {
		r := race{pace: newPace()}
		r.run(20000, noisy(), noisy())
		if len(r.said) > 0 {
			t.Fatalf("seed %d: said at ticks %v", seed, r.said)
		}
	}
}

func TestReplicaIsNotAheadOfALateAnswer(t *testing.T) {
	p := newPace()
	for p.steps = 1; p.steps < 20; p.steps++ {
		for !p.tick() {
		}
		for range 30 { // the answer takes long, and the master has gone on
			p.tick()
		}
		if p.hear(p.steps) || p.lead > 0 {
			t.Fatalf("ahead by %d of a master that is level", p.lead)
		}
	}
}

func TestMasterThatIsHeldUpOnceIsNotSlow(t *testing.T) {
	p := newPace()
	p.steps = 1
	p.tick()
	for range patientTicks - 2 {
		p.tick()
	}
	if p.hear(0) {
		t.Error("one late answer is enough")
	}
}

func TestLostAnswerIsAskedForAgain(t *testing.T) {
	p := newPace()
	p.steps = 1
	asked := 0
	for range 5 * patientTicks {
		if p.tick() {
			asked++
		}
	}
	if asked < 5 || asked > 6 || p.lead != 0 {
		t.Errorf("asked %d times, lead %d; want 5 or 6, and 0", asked, p.lead)
	}
	if p.hear(0); p.lead == 0 {
		t.Error("an answer does not count")
	}
	if lead := p.lead; p.hear(0) || p.lead != lead {
		t.Error("an answer to nothing counts")
	}
}

func TestMasterThatWasReplacedWaitsLongerForItsTurn(t *testing.T) {
	p := newPace()
	p.moved(true)
	if p.need != 2*leadSaid {
		t.Errorf("need %d, want %d", p.need, 2*leadSaid)
	}
	for range 100 {
		p.moved(true)
	}
	if p.need != mostLead {
		t.Errorf("need %d, want at most %d", p.need, mostLead)
	}
}
