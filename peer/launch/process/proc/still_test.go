package proc

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// one returns the state of a process with one thread and the given number of context switches.
func one(does activity, turns int64, told bool) stance {
	return stance{threads: map[int]thread{1: {does, turns}}, told: told}
}

// A look is the input of one round.
type look struct {
	scene Scene
	born  supervisor.Born
}

func TestStillness(t *testing.T) {
	const stood, ran = true, false
	looks := func(scenes ...Scene) (all []look) {
		for _, s := range scenes {
			all = append(all, look{s, 100})
		}
		return all
	}
	two := func(first, second thread, told bool) stance {
		return stance{threads: map[int]thread{1: first, 2: second}, told: told}
	}
	for name, c := range map[string]struct {
		looks []look
		still bool // at the end
		woken int
		moved int
	}{
		"no process":                   {looks(Scene{}, Scene{}), stood, 0, 0},
		"stops at once":                {looks(Scene{1: one(stands, 5, false)}, Scene{1: one(stands, 5, true)}), stood, 0, 0},
		"is seen once":                 {looks(Scene{1: one(stands, 5, false)}), ran, 0, 0},
		"stops late":                   {looks(Scene{1: one(runs, 5, true)}, Scene{1: one(stands, 6, false)}), ran, 0, 0},
		"waits for a child":            {looks(Scene{1: one(waits, 5, true)}, Scene{1: one(waits, 5, true)}), stood, 0, 0},
		"writes, and writes":           {looks(Scene{1: one(waits, 5, true)}, Scene{1: one(waits, 6, true)}, Scene{1: one(waits, 7, true)}), ran, 0, 0},
		"gets no processor":            {looks(Scene{1: one(runs, 5, true)}, Scene{1: one(runs, 5, true)}), ran, 0, 0},
		"a thread writes":              {looks(Scene{1: two(thread{stands, 5}, thread{waits, 7}, true)}, Scene{1: two(thread{stands, 5}, thread{waits, 8}, true)}), ran, 0, 0},
		"ends":                         {looks(Scene{1: one(runs, 5, false), 2: one(stands, 1, true)}, Scene{2: one(stands, 1, true)}), ran, 0, 0},
		"a child was under way":        {looks(Scene{1: one(runs, 5, true)}, Scene{1: one(stands, 6, false), 2: one(runs, 0, true)}), ran, 0, 1},
		"was woken":                    {looks(Scene{1: one(stands, 5, true)}, Scene{1: one(stands, 7, false)}), ran, 0, 0},
		"was woken twice":              {looks(Scene{1: one(stands, 5, true)}, Scene{1: one(stands, 7, false)}, Scene{1: one(stands, 9, false)}), ran, 1, 0},
		"seems stopped already":        {looks(Scene{1: one(stands, 5, true)}, Scene{1: one(stands, 6, true)}, Scene{1: one(stands, 6, true)}), stood, 0, 0},
		"stops of its own accord":      {looks(Scene{1: one(stands, 5, true)}, Scene{1: one(stands, 6, true)}, Scene{1: one(stands, 7, true)}), ran, 1, 0},
		"cannot be looked at":          {looks(Scene{1: {unseen: true}}, Scene{1: {unseen: true}}), ran, 0, 0},
		"no process is ever inspected": {looks(nil, nil), stood, 0, 0},
		"runs although it stood":       {looks(Scene{1: one(stands, 5, true)}, Scene{1: one(runs, 5, false)}), ran, 1, 0},
		"takes it again and again":     {looks(Scene{1: one(runs, 5, true)}, Scene{1: one(runs, 7, false)}, Scene{1: one(runs, 9, false)}, Scene{1: one(runs, 11, false)}), ran, 2, 0},
		"killed while stopped":         {looks(Scene{1: one(stands, 5, true)}, Scene{1: {threads: map[int]thread{1: {runs, 5}}, ends: true}}), ran, 0, 0},
		"dies for long":                {looks(Scene{1: {threads: map[int]thread{1: {runs, 5}}, ends: true}}, Scene{1: {threads: map[int]thread{1: {runs, 6}}, ends: true}}, Scene{1: {threads: map[int]thread{1: {runs, 7}}, ends: true}}), ran, 0, 0},
		"one unseen process":           {[]look{{Scene{1: one(stands, 5, true)}, 100}, {Scene{1: one(stands, 5, true)}, 101}}, ran, 0, 1},
		"many unseen processes":        {[]look{{Scene{1: one(stands, 5, true)}, 100}, {Scene{1: one(stands, 5, true)}, 200}}, ran, 1, 0},
		"many, but once":               {[]look{{Scene{1: one(stands, 5, true)}, 100}, {Scene{1: one(stands, 5, true)}, 200}, {Scene{1: one(stands, 5, true)}, 200}}, stood, 1, 0},
		"process IDs wrap around":      {[]look{{Scene{1: one(stands, 5, true)}, 32767}, {Scene{1: one(stands, 5, true)}, 300}, {Scene{1: one(stands, 5, true)}, 300}}, stood, 0, 1},
		"there are no numbers":         {[]look{{Scene{1: one(stands, 5, true)}, 0}, {Scene{1: one(stands, 5, true)}, 0}}, stood, 0, 0},
		"process IDs are known late":   {[]look{{Scene{1: one(stands, 5, true)}, 0}, {Scene{1: one(stands, 5, true)}, 5000}, {Scene{1: one(stands, 5, true)}, 5000}}, stood, 0, 1},
		"another number":               {looks(Scene{1: one(stands, 5, true)}, Scene{2: one(stands, 5, true)}), ran, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, still := NewStillness(nil, c.looks[0].born), false
			for _, l := range c.looks {
				still, _ = s.See(l.scene, l.born)
			}
			if still != c.still || s.woken != c.woken || s.moved != c.moved {
				t.Errorf("still %v, woken %d, moved %d; want %v, %d, %d", still, s.woken, s.moved, c.still, c.woken, c.moved)
			}
		})
	}
}

// TestRepeatedlyResumingProcessIsRestless checks that repeated resuming makes a process restless, and that a
// single time or a late stop does not.
func TestRepeatedlyResumingProcessIsRestless(t *testing.T) {
	for name, c := range map[string]struct {
		next  func(round int) look
		after int // number of rounds; 0: never
	}{
		"writes":         {func(n int) look { return look{Scene{1: one(waits, int64(n), true)}, 100} }, 0},
		"woken once":     {func(n int) look { return look{Scene{1: one(stands, int64(min(n, 1)), n < 1)}, 100} }, 0},
		"woken":          {func(n int) look { return look{Scene{1: one(stands, int64(n), false)}, 100} }, 2 + mostWoken},
		"one by one":     {func(n int) look { return look{crowd(min(n, 30)), supervisor.Born(100 + min(n, 30))} }, 0},
		"always another": {func(n int) look { return look{Scene{n: one(runs, 0, true)}, supervisor.Born(100 + n)} }, 1 + mostWoken*(2+spareBirths)},
		"not counted":    {func(n int) look { return look{Scene{n: one(runs, 0, true)}, 0} }, 1 + mostMoved},
		"never seen":     {func(n int) look { return look{Scene{}, supervisor.Born(100 + 1000*n)} }, 1 + mostWoken},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStillness(nil, 100)
			for n := range 100 {
				l := c.next(n)
				s.See(l.scene, l.born)
				if s.Restless() {
					if n+1 != c.after {
						t.Errorf("after %d rounds, want %d", n+1, c.after)
					}
					return
				}
			}
			if c.after > 0 {
				t.Error("nobody notices")
			}
		})
	}
}

// crowd returns n stopped processes.
func crowd(n int) Scene {
	s := make(Scene)
	for pid := range n {
		s[pid] = one(stands, 5, true)
	}
	return s
}

func TestSleepingProcessIsNotResumed(t *testing.T) {
	before := Scene{1: one(stands, 5, false), 2: one(runs, 5, false), 3: one(stands, 5, false)}
	s := NewStillness(before, 100)
	s.See(Scene{1: one(stands, 5, true), 2: one(stands, 6, true), 3: one(stands, 6, true), 4: one(stands, 1, true)}, 100)
	for pid, want := range map[int]bool{1: true, 2: false, 3: false, 4: false} {
		if got := s.asleep(pid); got != want {
			t.Errorf("%d: asleep %v", pid, got)
		}
	}
}

// TestChildOfALateProcessIsResumed checks that children of late processes are resumed: a SIGCONT to the
// parent does not discard their SIGSTOP.
func TestChildOfALateProcessIsResumed(t *testing.T) {
	const parent, other, child, its = 1, 2, 3, 4
	childOf := func(parent int, is stance) stance { is.parent = parent; return is }
	stood := one(stands, 1, false)
	for name, c := range map[string]struct {
		later []Scene // without the process other, which resumes
		wakes int     // the look in which the child is resumed; 0: none
		late  bool    // at the end
	}{
		"it is born later":           {[]Scene{{parent: one(waits, 5, false)}, {parent: one(runs, 6, false), child: childOf(parent, stood)}}, 2, true},
		"it has not heard yet":       {[]Scene{{parent: one(runs, 5, false), child: childOf(parent, one(runs, 0, true))}}, 1, true},
		"it is waited for":           {[]Scene{{parent: one(waits, 5, false), child: childOf(parent, stood)}}, 1, true}, // vfork
		"no list has it at first":    {[]Scene{{parent: one(rests, 6, false)}, {parent: one(rests, 6, false), child: childOf(parent, stood)}}, 2, true},
		"the parent is not listed":   {[]Scene{{}, {parent: one(waits, 5, false)}, {parent: one(waits, 5, false)}, {parent: one(rests, 6, false), child: childOf(parent, stood)}}, 4, true},
		"the parent cannot be seen":  {[]Scene{{parent: {unseen: true}}, {parent: {unseen: true}}, {parent: one(rests, 6, false), child: childOf(parent, stood)}}, 3, true},
		"the parent has ended":       {[]Scene{{child: childOf(99, stood)}}, 1, true},
		"there is none":              {[]Scene{{parent: one(rests, 6, false)}, {parent: one(rests, 6, false)}}, 0, false},
		"one that runs":              {[]Scene{{parent: one(runs, 6, false), child: childOf(parent, one(rests, 1, false))}}, 0, true},
		"another's, of its own will": {[]Scene{{parent: one(waits, 5, false), its: childOf(other, stood)}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			halted := Scene{parent: one(waits, 5, true), other: one(stands, 6, true)}
			s := NewStillness(Scene{parent: one(waits, 5, false), other: one(runs, 5, false)}, 100)
			s.See(halted, 100)
			if still, _ := s.See(halted, 100); !still || len(s.Halted()) != 2 || !s.Late() {
				t.Fatalf("still %v; %v go on, late %v", still, s.Halted(), s.Late())
			}
			woken := 0
			for n, now := range c.later {
				now[other] = one(runs, 7, false)
				asleep := s.Awake(now)
				if _, there := asleep[child]; there == (n+1 == c.wakes) && now[child].threads != nil && c.wakes > 0 {
					t.Errorf("look %d: before the next time these do what they do of their own accord: %v", n+1, asleep)
				}
				if made := s.Made(now); slices.Equal(made, []int{child}) {
					woken = n + 1
				} else if len(made) > 0 {
					t.Errorf("look %d: %v go on", n+1, made)
				}
				if again := s.children(now); len(again) > 0 {
					t.Errorf("look %d: %v go on again and again", n+1, again)
				}
			}
			if woken != c.wakes || s.Late() != c.late {
				t.Errorf("it goes on in look %d, want %d; late %v", woken, c.wakes, s.Late())
			}
		})
	}
}

// TestProcessSeenStoppedOnceIsLate checks that a process is late unless it was seen stopped twice. A
// list of processes is older than their states, so it may lack a child created just before.
func TestProcessSeenStoppedOnceIsLate(t *testing.T) {
	const parent, child = 1, 2
	made := one(stands, 1, false)
	made.parent = parent
	s := NewStillness(nil, 100)
	s.See(Scene{parent: one(stands, 5, true)}, 100)
	if halted := s.Halted(); !slices.Equal(halted, []int{parent}) || !s.Late() {
		t.Fatalf("%v go on, late %v", halted, s.Late())
	}
	if got := s.Made(Scene{parent: one(rests, 6, false), child: made}); !slices.Equal(got, []int{child}) {
		t.Errorf("then %v go on", got)
	}
}

// TestGrandchildOfALateProcessIsResumed checks that children of such a child are resumed too: it may have
// received SIGSTOP while it was creating one.
func TestGrandchildOfALateProcessIsResumed(t *testing.T) {
	const parent, child, its = 1, 2, 3
	s := NewStillness(nil, 100)
	s.See(Scene{parent: one(waits, 5, true)}, 100)
	s.Halted()
	first, second := one(waits, 1, true), one(stands, 1, false)
	first.parent, second.parent = parent, child
	for n, now := range []Scene{{parent: one(rests, 6, false), child: first}, {parent: one(rests, 6, false), child: first, its: second}} {
		if got, want := s.Made(now), []int{child, its}[n:n+1]; !slices.Equal(got, want) {
			t.Errorf("look %d: %v go on, want %v", n+1, got, want)
		}
	}
}

// TestOtherThreadsDoNotMakeAProcessLate checks that threads that were stopped, and those created later, do
// not make a process late.
func TestOtherThreadsDoNotMakeAProcessLate(t *testing.T) {
	of := func(threads ...activity) stance {
		s := stance{threads: make(map[int]thread)}
		for id, does := range threads {
			s.threads[id] = thread{does, 5}
		}
		return s
	}
	s := NewStillness(nil, 100)
	s.See(Scene{1: of(waits, stands)}, 100)
	s.Halted()
	for looks := range 2 {
		if s.Made(Scene{1: of(rests, waits, waits)}); s.Late() == (looks == 1) {
			t.Errorf("look %d: late %v", looks+1, s.Late())
		}
	}
}

// TestLatenessIsBounded checks how long a process stays late, depending on its activity. Only waiting has
// no bound.
func TestLatenessIsBounded(t *testing.T) {
	for does, want := range map[activity]int{runs: mostLooks, rests: 2, stands: 2, waits: 100} {
		s := NewStillness(nil, 100)
		s.See(Scene{1: one(waits, 5, true)}, 100)
		s.Halted()
		looks := 0
		for ; s.Late() && looks < 100; looks++ {
			s.Made(Scene{1: one(does, 6, false)})
		}
		if looks != want {
			t.Errorf("of who does %d: %d looks, want %d", does, looks, want)
		}
	}
}

// TestProcessStoppedBeforeTheHaltIsAsleep checks that a process that was stopped before the halt is not
// resumed, even without a look since.
func TestProcessStoppedBeforeTheHaltIsAsleep(t *testing.T) {
	s := NewStillness(Scene{1: one(stands, 5, false), 2: one(runs, 5, false)}, 100)
	if halted := s.Halted(); !slices.Equal(halted, []int{2}) || !s.Late() {
		t.Errorf("go on %v", halted)
	}
}

// TestEndedProcessIsNotResumed checks that the ID of an ended process is not signaled, since it may have been
// reused. A process that one look missed is still resumed.
func TestEndedProcessIsNotResumed(t *testing.T) {
	s := NewStillness(Scene{1: one(runs, 5, false), 2: one(runs, 5, false)}, 100)
	for _, now := range []Scene{{1: one(stands, 6, true), 2: one(stands, 6, true)}, {1: one(stands, 6, true), 2: one(stands, 6, true)}, {1: one(stands, 6, true)}} {
		s.See(now, 100)
		if n := len(s.Halted()); n != 2 {
			t.Fatalf("%d are to be woken", n)
		}
	}
	if still, _ := s.See(Scene{1: one(stands, 6, true)}, 100); !still || !slices.Equal(s.Halted(), []int{1}) {
		t.Errorf("still %v; to be woken: %v", still, s.Halted())
	}
	for range 2 {
		s.See(Scene{}, 100)
	}
	if !slices.Equal(s.Halted(), []int{1}) {
		t.Errorf("nobody could look, and to be woken are %v", s.Halted())
	}
}
