package job

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

var (
	states    = flag.Int("states", defaultStates, "maximum number of states to explore in each scenario")
	schedules = flag.Int("schedules", 2000, "number of random orders of the events of larger jobs")
	seed      = flag.Uint64("seed", 0, "seed of the random paths; 0: a random one")
)

var scenarios = []scenario{
	{name: "n=1", n: 1, r: 2},
	{name: "n=1, a crash", n: 1, r: 2, allowed: faults{crashes: 1}},
	{name: "n=1, two crashes, a recruit", n: 1, r: 2, free: 1, allowed: faults{crashes: 2}},
	{name: "n=1, two crashes, two recruits", n: 1, r: 2, free: 2, allowed: faults{crashes: 2}},
	{name: "n=1, a killed process, a recruit", n: 1, r: 2, free: 1, allowed: faults{deaths: 1}},
	{name: "n=1, stream lost twice, a crash", n: 1, r: 2, allowed: faults{breaks: 2, crashes: 1}},
	{name: "n=1, submitter killed", n: 1, r: 2, allowed: faults{kills: 1}},
	{name: "n=1, submitter killed, a crash", n: 1, r: 2, allowed: faults{kills: 1, crashes: 1}},
	{name: "n=1, submitter killed, a crash, a recruit", n: 1, r: 2, free: 1, allowed: faults{kills: 1, crashes: 1}},
	{name: "n=1, submitter killed, position not recorded", n: 1, r: 2, allowed: faults{kills: 1, unkept: 1}},
	{name: "n=1, submitter killed, stream lost, a killed process", n: 1, r: 2, allowed: faults{kills: 1, breaks: 1, deaths: 1}},
	{name: "n=1, submitter cut off, a crash", n: 1, r: 2, allowed: faults{cuts: 1, crashes: 1}},
	{name: "n=1, submitter cut off, a crash, a recruit", n: 1, r: 2, free: 1, allowed: faults{cuts: 1, crashes: 1}},
	{name: "n=1, submitter cut off, a killed process, a recruit", n: 1, r: 2, free: 1, allowed: faults{cuts: 1, deaths: 1}},
	{name: "n=1, a peer departs", n: 1, r: 2, allowed: faults{departs: 1}},
	{name: "n=1, a peer departs, a recruit", n: 1, r: 2, free: 1, allowed: faults{departs: 1}},
	{name: "n=1, two peers depart, two recruits", n: 1, r: 2, free: 2, allowed: faults{departs: 2}},
	{name: "n=1, a peer departs, a crash, a recruit", n: 1, r: 2, free: 1, allowed: faults{departs: 1, crashes: 1}},
	{name: "n=1, a peer departs, a crash, submitter killed", n: 1, r: 2, allowed: faults{departs: 1, crashes: 1, kills: 1}},
	{name: "n=1, a move, a crash", n: 1, r: 2, allowed: faults{moves: 1, crashes: 1}},
	{name: "n=1, aside", n: 1, r: 2, allowed: faults{silences: 1}},
	{name: "n=1, aside, a crash", n: 1, r: 2, allowed: faults{silences: 1, crashes: 1}},
	{name: "n=1, aside, a peer departs", n: 1, r: 2, allowed: faults{silences: 1, departs: 1}},
	{name: "n=1, aside, a peer departs, a recruit", n: 1, r: 2, free: 1, allowed: faults{silences: 1, departs: 1}},
	{name: "n=1, r=3, a process hangs before mpj.Init", n: 1, r: 3, allowed: faults{hangs: 1}},
	{name: "n=1, a process hangs before mpj.Init", n: 1, r: 2, allowed: faults{hangs: 1}},
	{name: "n=1, without mpj, a crash", n: 1, r: 2, plain: true, allowed: faults{crashes: 1}},
	{name: "n=1, Abort, a crash", n: 1, r: 2, aborts: true, allowed: faults{crashes: 1}},
	{name: "n=1, Abort, two moves", n: 1, r: 2, aborts: true, allowed: faults{moves: 2}},
	{name: "n=1, Abort, submitter killed", n: 1, r: 2, aborts: true, allowed: faults{kills: 1}},
	{name: "n=2, r=1, Abort", n: 2, r: 1, aborts: true},
	{name: "n=1, another result", n: 1, r: 2, allowed: faults{wrongs: 1}},
	{name: "n=1, r=3, another result", n: 1, r: 3, allowed: faults{wrongs: 1}},
	{name: "n=1, r=3, two crashes", n: 1, r: 3, allowed: faults{crashes: 2}},
	{name: "n=2, r=1, a crash", n: 2, r: 1, allowed: faults{crashes: 1}},
	{name: "n=2, a crash", n: 2, r: 2, allowed: faults{crashes: 1}},
	{name: "n=2, without mpj", n: 2, r: 1, plain: true},
	{name: "n=2, a crash, a recruit", n: 2, r: 2, free: 1, allowed: faults{crashes: 1}},
	{name: "n=2, a crash, a recruit, submitter killed", n: 2, r: 2, free: 1, allowed: faults{crashes: 1, kills: 1}},
}

// TestEveryInterleaving checks V1, R6, R7, and that the job ends with the right result, in every state of a small job:
// every order of the steps of programs, peers, the submitter and the log, and of faults. A scenario that is too large
// for -states is explored breadth first, complete up to a certain number of events, and from there at random to its
// end.
func TestEveryInterleaving(t *testing.T) {
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			x := explore(sc, skip.Fewer(*states, 2000), base)
			if x.broken != nil {
				t.Fatal(x.failure())
			}
			t.Logf("%s: %v", sc.name, x)
		})
	}
}

// An exploration contains the states of a scenario that have been reached, in breadth-first order.
type exploration struct {
	scenario
	seed   maphash.Seed
	met    map[uint64]bool
	key    []byte
	parent []int32  // by state: the state before
	by     []uint16 // by state: number of the step from the state before
	level  []*world // the last states
	first  int32    // number of the first state of level
	next   []*world

	events, ends, depth, paths, length int
	complete                           bool
	broken                             error
	trace                              []string
}

func (x *exploration) String() string {
	s := fmt.Sprintf("%d states, %d events, %d ends, ", len(x.parent), x.events, x.ends)
	if x.complete {
		return s + fmt.Sprintf("complete: %d events deep", x.depth)
	}
	return s + fmt.Sprintf("every order of %d events, then %d paths of %d", x.depth, x.paths, x.length/max(1, x.paths))
}

func (x *exploration) failure() string {
	return fmt.Sprintf("%v\nafter %d events:\n\t%s", x.broken, len(x.trace), strings.Join(x.trace, "\n\t"))
}

const (
	// statesPerPath is the number of states found breadth first for each random path.
	statesPerPath = 200
	// longestPath is more than the number of steps on a path to an end.
	longestPath = 1000
)

// explore explores a scenario breadth first, up to a depth with most states, and continues on random paths.
func explore(sc scenario, most int, seed uint64) *exploration {
	x := &exploration{scenario: sc, seed: maphash.MakeSeed(), met: make(map[uint64]bool)}
	w := startWorld(sc)
	x.meet(w, 0, 0)
	x.level, x.next = x.next, nil
	for len(x.level) > 0 && len(x.parent) < most {
		first := int32(len(x.parent))
		for i, w := range x.level {
			if x.expand(w, x.first+int32(i)); x.broken != nil {
				return x
			}
		}
		x.level, x.next, x.first = x.next, nil, first
		x.depth++
	}
	if x.complete = len(x.level) == 0; x.complete {
		x.depth-- // the last step found no new state
		return x
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for range most / statesPerPath {
		i := rng.IntN(len(x.level))
		trace, err := walk(x.level[i].clone(), rng)
		x.paths++
		x.length += len(trace)
		if err != nil {
			x.broken, x.trace = err, append(append(x.path(x.first+int32(i)), fmt.Sprintf("at random, -seed %d:", seed)), trace...)
			return x
		}
	}
	return x
}

// meet records a state that is new.
func (x *exploration) meet(w *world, parent int32, by int) {
	x.key = w.appendKey(x.key[:0])
	if h := maphash.Bytes(x.seed, x.key); !x.met[h] {
		x.met[h] = true
		x.parent, x.by, x.next = append(x.parent, parent), append(x.by, uint16(by)), append(x.next, w)
	}
}

// expand takes each step of a state.
func (x *exploration) expand(w *world, number int32) {
	var leave []step // steps that lead to another state
	here := string(w.appendKey(nil))
	for i, s := range w.steps() {
		after := w.clone()
		if err := after.take(s); err != nil {
			x.broken, x.trace = err, append(x.path(number), w.describe(s))
			return
		}
		x.events++
		if x.meet(after, number, i); string(x.key) != here {
			leave = append(leave, s)
		}
	}
	if w.result != nil {
		x.ends++
	}
	if err := w.checkProgress(leave); err != nil {
		x.broken, x.trace = err, x.path(number)
	}
}

// checkProgress checks a state that the given steps can leave.
func (w *world) checkProgress(all []step) error {
	presses := func(s step) bool { return s.action.class == progress || s.action.class == waiting }
	switch {
	case w.result != nil || slices.ContainsFunc(all, presses):
		return nil
	case !slices.ContainsFunc(all, func(s step) bool { return s.action.class == program }):
		return fmt.Errorf("no event is left, and the job has no result")
	}
	return w.checkIdle()
}

// path describes the steps that led to a state.
func (x *exploration) path(number int32) (trace []string) {
	var by []uint16
	for ; number != 0; number = x.parent[number] {
		by = append(by, x.by[number])
	}
	w := startWorld(x.scenario)
	for _, i := range slices.Backward(by) {
		s := w.steps()[i]
		trace = append(trace, w.describe(s))
		if err := w.take(s); err != nil {
			return append(trace, err.Error())
		}
	}
	return trace
}

// pick picks a random step. Faults are rare, so that some happen late.
func pick(all []step, rng *rand.Rand) step {
	rare := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return s.action.class == fault })
	if len(rare) > 0 && rng.IntN(4) > 0 {
		all = rare
	}
	return all[rng.IntN(len(all))]
}

// TestRandomOrders checks the same promises with random orders of the events of larger jobs.
func TestRandomOrders(t *testing.T) {
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	for i := range uint64(skip.Fewer(*schedules, 200)) {
		rng := rand.New(rand.NewPCG(base+i, 1))
		sc := randomScenario(rng)
		if trace, err := walk(startWorld(sc), rng); err != nil {
			t.Fatalf("-seed %d, %+v: %v\nafter %d events:\n\t%s", base+i, sc, err, len(trace), strings.Join(trace, "\n\t"))
		}
	}
}

// randomScenario returns a job of up to three ranks with up to three replicas each.
func randomScenario(rng *rand.Rand) scenario {
	kind := rng.IntN(8)
	return scenario{
		n: 1 + rng.IntN(3), r: 2 + rng.IntN(2), free: rng.IntN(4), plain: kind == 0, aborts: kind == 1,
		allowed: faults{
			crashes: rng.IntN(4), deaths: rng.IntN(2), breaks: rng.IntN(3), kills: rng.IntN(3), cuts: rng.IntN(3), unkept: rng.IntN(2),
			departs: rng.IntN(3), moves: rng.IntN(3), silences: rng.IntN(3),
		},
	}
}

// walk takes random steps of w until the job has a result.
func walk(w *world, rng *rand.Rand) (trace []string, err error) {
	for w.result == nil {
		all := w.steps()
		if err := w.checkProgress(all); err != nil {
			return trace, err
		}
		s := pick(all, rng)
		trace = append(trace, w.describe(s))
		if err := w.take(s); err != nil {
			return trace, err
		}
		if len(trace) > longestPath {
			return trace, fmt.Errorf("the job does not end")
		}
	}
	return trace, nil
}
