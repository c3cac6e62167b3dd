package replication

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A space contains the reachable states of a scenario's whole job, each once, in breadth-first order.
type space struct {
	*jobStates
	met    hashSet
	parent []uint32 // per state, in order of discovery
	by     []uint16 // the event of the parent that led to the state
	level  []uint32 // consecutive states to continue from
	first  uint32   // number of the first state in level
	report report
}

// A report states how far a space has been explored.
type report struct {
	states, events int // different states; transitions between them
	ends           int // states in which no event is pending
	locals         int // states of single processes
	depth          int // every sequence of this many events has been explored
	complete       bool
	dives, drops   int   // random paths from that depth to an end; events on these paths
	broken         error // a broken promise
	trace          []string
}

func (r report) String() string {
	s := fmt.Sprintf("%d states (%d of single processes), %d events, %d ends, ", r.states, r.locals, r.events, r.ends)
	if r.complete {
		return s + fmt.Sprintf("complete: %d events deep", r.depth)
	}
	return s + fmt.Sprintf("every order of the first %d events, then %d random paths to an end with %d events", r.depth, r.dives, r.drops)
}

// explore explores every order of events of a scenario, until there are no new states, or a depth is complete and
// most states have been found. From that depth it continues on random paths.
func explore(sc scenario, most int, seed uint64) report {
	s := &space{jobStates: newJobStates(sc)}
	start := s.start()
	s.met.add(start.hash())
	s.parent, s.by = append(s.parent, 0), append(s.by, 0)
	s.level = append(s.level, start...)
	for len(s.level) > 0 && s.report.broken == nil {
		if len(s.parent) >= most {
			break
		}
		if s.step(); s.report.broken == nil {
			s.report.depth++
		}
	}
	s.report.complete = len(s.level) == 0 && s.report.broken == nil
	if s.report.complete {
		s.report.depth-- // the last step found no new state
	}
	s.report.states = len(s.parent)
	if len(s.level) > 0 && s.report.broken == nil {
		s.walkRandomly(seed, most/statesPerWalk)
	}
	s.report.locals = len(s.states.all)
	return s.report
}

// statesPerWalk is the number of states found breadth first for each random path.
const statesPerWalk = 400

// longest is more than the number of events on a path to an end.
const longest = 1000

// walkRandomly follows random paths from states of the last level to an end.
func (s *space) walkRandomly(seed uint64, ways int) {
	rng, width := rand.New(rand.NewPCG(seed, 0)), s.width()
	for range ways {
		at := rng.IntN(len(s.level) / width)
		st := slices.Clone(state(s.level[at*width : (at+1)*width]))
		var trace []string
		for end := false; !end && s.report.broken == nil; {
			var ev string
			st, ev, end = s.drop(rng, st)
			if trace = append(trace, ev); len(trace) > longest {
				s.report.broken = errors.New("the job does not end")
			}
		}
		if s.report.broken != nil {
			s.report.trace = append(append(s.trace(s.first+uint32(at)), fmt.Sprintf("at random, -seed %d:", seed)), trace...)
			return
		}
		s.report.dives++
	}
}

// drop takes a random event of a state. end reports that no event has to happen.
func (s *space) drop(rng *rand.Rand, st state) (after state, ev string, end bool) {
	var ways []event
	idle := true
	for _, ev := range s.eventsOf(st) {
		next, err := s.apply(st, ev)
		if err != nil {
			s.report.broken = err
			return st, s.describe(ev), false
		}
		if next != nil {
			ways = append(ways, ev)
			idle = idle && !s.pressing(st, ev)
		}
	}
	if idle {
		s.report.ends++
		s.report.broken = s.judgeEnd(st)
		return st, "", true
	}
	way := ways[rng.IntN(len(ways))]
	after, _ = s.apply(st, way)
	s.report.drops++
	s.report.broken = s.judge(after)
	return after, s.describe(way), false
}

// step continues from every state of the level to the next level.
func (s *space) step() {
	var next []uint32
	width := s.width()
	number := s.first
	s.first = uint32(len(s.parent))
	for at := 0; at < len(s.level); at += width {
		if s.expand(number, state(s.level[at:at+width]), &next); s.report.broken != nil {
			return
		}
		number++
	}
	s.level = next
}

// expand takes every event of one state.
func (s *space) expand(number uint32, st state, next *[]uint32) {
	idle := true
	for i, ev := range s.eventsOf(st) {
		after, err := s.apply(st, ev)
		if err == nil && after != nil {
			s.report.events++
			idle = idle && !s.pressing(st, ev)
			if !s.met.add(after.hash()) {
				continue
			}
			s.parent, s.by = append(s.parent, number), append(s.by, uint16(i))
			*next = append(*next, after...)
			err = s.judge(after)
		}
		if err != nil {
			s.report.broken, s.report.trace = err, append(s.trace(number), s.describe(ev))
			return
		}
	}
	if !idle {
		return
	}
	s.report.ends++
	if err := s.judgeEnd(st); err != nil {
		s.report.broken, s.report.trace = err, s.trace(number)
	}
}

// trace describes the events that led to a state.
func (s *space) trace(number uint32) []string {
	var ways []uint16
	for ; number != 0; number = s.parent[number] {
		ways = append(ways, s.by[number])
	}
	var trace []string
	st := s.start()
	for i := len(ways) - 1; i >= 0; i-- {
		ev := s.eventsOf(st)[ways[i]]
		trace = append(trace, s.describe(ev))
		after, err := s.apply(st, ev)
		if err != nil {
			return append(trace, err.Error())
		}
		st = append(state(nil), after...)
	}
	return trace
}

func (r report) failure() string {
	return fmt.Sprintf("%v\nafter %d events:\n\t%s", r.broken, len(r.trace), strings.Join(r.trace, "\n\t"))
}

// A hashSet is a set of 64-bit hashes. Among ten million states, two states share a hash with a probability of 3
// in a million. The exploration would then skip one of them.
type hashSet struct {
	slots []uint64
	count int
}

// add adds h to the set, and reports whether it is new.
func (s *hashSet) add(h uint64) bool {
	if 2*s.count >= len(s.slots) {
		s.grow()
	}
	h = max(h, 1) // 0 marks a free slot
	last := uint64(len(s.slots) - 1)
	i := h & last
	for ; s.slots[i] != 0; i = (i + 1) & last {
		if s.slots[i] == h {
			return false
		}
	}
	s.slots[i] = h
	s.count++
	return true
}

func (s *hashSet) grow() {
	old := s.slots
	s.slots, s.count = make([]uint64, max(1024, 2*len(old))), 0
	for _, h := range old {
		if h != 0 {
			s.add(h)
		}
	}
}
