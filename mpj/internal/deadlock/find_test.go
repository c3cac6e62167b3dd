package deadlock

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// waits returns the state of a rank with a call that any of ranks may end.
func waits(ranks ...int) State {
	return State{Idle: true, Waits: []Wait{{Number: 1, For: ranks}}}
}

var ended = State{Ended: true}

func (s State) sent(to int, n uint64) State {
	s.Sent = map[int]uint64{to: n}
	return s
}

func (s State) received(from int, n uint64) State {
	s.Received = map[int]uint64{from: n}
	return s
}

func TestFind(t *testing.T) {
	two := State{Idle: true, Waits: []Wait{{Number: 1, For: []int{1}}, {Number: 2, For: []int{2}}}}
	cases := []struct {
		name   string
		states []State
		want   []int
	}{
		{"no rank waits", []State{{}, {}}, nil},
		{"two ranks wait for each other", []State{waits(1), waits(0)}, []int{0, 1}},
		{"a chain to a rank that computes", []State{waits(1), waits(2), {}}, nil},
		{"a chain to a rank that has ended", []State{waits(1), waits(2), ended}, []int{0, 1}},
		{"a cycle and a rank that computes", []State{waits(1), waits(0), {}}, []int{0, 1}},
		{"a cycle that a third rank can release", []State{waits(1), waits(0, 2), {}}, nil},
		{"any source, all wait", []State{waits(1, 2), waits(0, 2), waits(0, 1)}, []int{0, 1, 2}},
		{"one goroutine of two can be released", []State{two, waits(0), {}}, nil},
		{"no goroutine of two can be released", []State{two, waits(0), ended}, []int{0, 1}},
		{"a rank waits for itself", []State{waits(0), {}}, []int{0}},
		{"a rank waits for its own operation", []State{waits(), {}}, []int{0}},
		{"a rank waits for a rank that does not exist", []State{waits(7), waits(0)}, nil},
		{"a message is in transit", []State{waits(1), waits(0).sent(0, 1)}, nil},
		{"a message has arrived", []State{waits(1).received(1, 1), waits(0).sent(0, 1)}, []int{0, 1}},
		{"a message of an ended rank is in transit", []State{waits(1), ended.sent(0, 1)}, nil},
		{"a message of an ended rank has arrived", []State{waits(1).received(1, 1), ended.sent(0, 1)}, []int{0}},
		{"a rank waits for deadlocked ranks", []State{waits(1), waits(0), waits(0)}, []int{0, 1, 2}},
		{"idle without a call", []State{{Idle: true}, waits(0)}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Find(c.states, c.states); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestFindNeedsTwoEqualRounds checks that a rank that was not idle between the rounds counts as
// running.
func TestFindNeedsTwoEqualRounds(t *testing.T) {
	before := []State{waits(1).sent(1, 3), waits(0)}
	later := waits(1).sent(1, 3)
	later.Waits = []Wait{{Number: 2, For: []int{1}}}
	for name, now := range map[string]State{
		"another call": later, "another count": waits(1).sent(1, 4), "computes": {}, "has ended": ended,
	} {
		if got := Find(before, []State{now, waits(0)}); got != nil {
			t.Errorf("%s: a deadlock was reported: %v", name, got)
		}
	}
	if got := Find(nil, before); got != nil {
		t.Errorf("first round: got %v", got)
	}
}

// TestFindAgreesWithExhaustiveSearch checks that Find returns the largest set of ranks that wait
// only for each other.
func TestFindAgreesWithExhaustiveSearch(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		states := randomStates(random, 1+random.IntN(6))
		got, want := Find(states, states), tryEverything(states)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v of %+v", seed, got, want, states)
		}
	}
}

func randomStates(random *rand.Rand, n int) []State {
	states := make([]State, n)
	for i := range states {
		s := State{Sent: map[int]uint64{}, Received: map[int]uint64{}}
		switch random.IntN(6) {
		case 0:
			s.Ended = true
		case 1: // computes
		default:
			s.Idle = true
			for k := range 1 + random.IntN(2) {
				w := Wait{Number: uint64(k)}
				for range random.IntN(3) {
					w.For = append(w.For, random.IntN(n))
				}
				s.Waits = append(s.Waits, w)
			}
		}
		if random.IntN(8) == 0 {
			s.Sent[random.IntN(n)] = 1
		}
		states[i] = s
	}
	return states
}

// tryEverything tries all sets of ranks, and returns the largest closed one.
func tryEverything(states []State) []int {
	n := len(states)
	var best []int
	for set := range 1 << n {
		if members := closed(states, set); len(members) > len(best) {
			best = members
		}
	}
	return best
}

// closed returns the members of set that have not ended, or nil if they can proceed. They cannot if
// all are idle, none waits for a rank outside the set, and no message that may end a wait is in
// transit.
func closed(states []State, set int) []int {
	in := func(i int) bool { return set>>i&1 == 1 }
	var members []int
	for i, s := range states {
		if !in(i) || s.Ended {
			continue
		}
		if !s.Idle {
			return nil
		}
		members = append(members, i)
		for _, w := range s.Waits {
			for _, j := range w.For {
				if j != i && (!in(j) || states[j].Sent[i] != s.Received[j]) {
					return nil
				}
			}
		}
	}
	return members
}
