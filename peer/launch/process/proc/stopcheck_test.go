package proc

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// one returns the state of a process with one thread and the given number of context switches.
func one(does activity, switches int64, pending bool) state {
	return state{threads: map[int]thread{1: {does, switches}}, stopPending: pending}
}

// A round is the input of one round.
type round struct {
	snapshot Snapshot
	lastPID  supervisor.LastPID
}

func TestStopCheck(t *testing.T) {
	const isStopped, ran = true, false
	rounds := func(snapshots ...Snapshot) (all []round) {
		for _, s := range snapshots {
			all = append(all, round{s, 100})
		}
		return all
	}
	two := func(first, second thread, pending bool) state {
		return state{threads: map[int]thread{1: first, 2: second}, stopPending: pending}
	}
	for name, c := range map[string]struct {
		rounds  []round
		stopped bool // at the end
		resumes int
		changes int
	}{
		"no process":                   {rounds(Snapshot{}, Snapshot{}), isStopped, 0, 0},
		"stops at once":                {rounds(Snapshot{1: one(stopped, 5, false)}, Snapshot{1: one(stopped, 5, true)}), isStopped, 0, 0},
		"inspected once":               {rounds(Snapshot{1: one(stopped, 5, false)}), ran, 0, 0},
		"stops late":                   {rounds(Snapshot{1: one(running, 5, true)}, Snapshot{1: one(stopped, 6, false)}), ran, 0, 0},
		"waits for a child":            {rounds(Snapshot{1: one(blocked, 5, true)}, Snapshot{1: one(blocked, 5, true)}), isStopped, 0, 0},
		"keeps writing":                {rounds(Snapshot{1: one(blocked, 5, true)}, Snapshot{1: one(blocked, 6, true)}, Snapshot{1: one(blocked, 7, true)}), ran, 0, 0},
		"gets no processor":            {rounds(Snapshot{1: one(running, 5, true)}, Snapshot{1: one(running, 5, true)}), ran, 0, 0},
		"a thread writes":              {rounds(Snapshot{1: two(thread{stopped, 5}, thread{blocked, 7}, true)}, Snapshot{1: two(thread{stopped, 5}, thread{blocked, 8}, true)}), ran, 0, 0},
		"ends":                         {rounds(Snapshot{1: one(running, 5, false), 2: one(stopped, 1, true)}, Snapshot{2: one(stopped, 1, true)}), ran, 0, 0},
		"was creating a child":         {rounds(Snapshot{1: one(running, 5, true)}, Snapshot{1: one(stopped, 6, false), 2: one(running, 0, true)}), ran, 0, 1},
		"resumed once":                 {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: one(stopped, 7, false)}), ran, 0, 0},
		"resumed twice":                {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: one(stopped, 7, false)}, Snapshot{1: one(stopped, 9, false)}), ran, 1, 0},
		"counts as stopped too early":  {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: one(stopped, 6, true)}, Snapshot{1: one(stopped, 6, true)}), isStopped, 0, 0},
		"stops itself":                 {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: one(stopped, 6, true)}, Snapshot{1: one(stopped, 7, true)}), ran, 1, 0},
		"cannot be inspected":          {rounds(Snapshot{1: {incomplete: true}}, Snapshot{1: {incomplete: true}}), ran, 0, 0},
		"no process is ever inspected": {rounds(nil, nil), isStopped, 0, 0},
		"runs after it was stopped":    {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: one(running, 5, false)}), ran, 1, 0},
		"takes SIGSTOP repeatedly":     {rounds(Snapshot{1: one(running, 5, true)}, Snapshot{1: one(running, 7, false)}, Snapshot{1: one(running, 9, false)}, Snapshot{1: one(running, 11, false)}), ran, 2, 0},
		"killed while stopped":         {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{1: {threads: map[int]thread{1: {running, 5}}, dying: true}}), ran, 0, 0},
		"takes long to die":            {rounds(Snapshot{1: {threads: map[int]thread{1: {running, 5}}, dying: true}}, Snapshot{1: {threads: map[int]thread{1: {running, 6}}, dying: true}}, Snapshot{1: {threads: map[int]thread{1: {running, 7}}, dying: true}}), ran, 0, 0},
		"one unseen process":           {[]round{{Snapshot{1: one(stopped, 5, true)}, 100}, {Snapshot{1: one(stopped, 5, true)}, 101}}, ran, 0, 1},
		"many unseen processes":        {[]round{{Snapshot{1: one(stopped, 5, true)}, 100}, {Snapshot{1: one(stopped, 5, true)}, 200}}, ran, 1, 0},
		"many unseen, once":            {[]round{{Snapshot{1: one(stopped, 5, true)}, 100}, {Snapshot{1: one(stopped, 5, true)}, 200}, {Snapshot{1: one(stopped, 5, true)}, 200}}, isStopped, 1, 0},
		"process IDs wrap around":      {[]round{{Snapshot{1: one(stopped, 5, true)}, 32767}, {Snapshot{1: one(stopped, 5, true)}, 300}, {Snapshot{1: one(stopped, 5, true)}, 300}}, isStopped, 0, 1},
		"process IDs are unknown":      {[]round{{Snapshot{1: one(stopped, 5, true)}, 0}, {Snapshot{1: one(stopped, 5, true)}, 0}}, isStopped, 0, 0},
		"process IDs are known late":   {[]round{{Snapshot{1: one(stopped, 5, true)}, 0}, {Snapshot{1: one(stopped, 5, true)}, 5000}, {Snapshot{1: one(stopped, 5, true)}, 5000}}, isStopped, 0, 1},
		"another process ID":           {rounds(Snapshot{1: one(stopped, 5, true)}, Snapshot{2: one(stopped, 5, true)}), ran, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, stopped := NewStopCheck(nil, c.rounds[0].lastPID), false
			for _, r := range c.rounds {
				stopped, _ = s.Observe(r.snapshot, r.lastPID)
			}
			if stopped != c.stopped || s.resumes != c.resumes || s.changes != c.changes {
				t.Errorf("stopped %v, resumes %d, changes %d; want %v, %d, %d", stopped, s.resumes, s.changes, c.stopped, c.resumes, c.changes)
			}
		})
	}
}

// TestKeepsRunning checks that a process that is resumed repeatedly counts as one that keeps running, and
// that a single time or a late stop does not suffice.
func TestKeepsRunning(t *testing.T) {
	for name, c := range map[string]struct {
		next  func(n int) round
		after int // number of rounds; 0: never
	}{
		"writes":         {func(n int) round { return round{Snapshot{1: one(blocked, int64(n), true)}, 100} }, 0},
		"resumed once":   {func(n int) round { return round{Snapshot{1: one(stopped, int64(min(n, 1)), n < 1)}, 100} }, 0},
		"resumed":        {func(n int) round { return round{Snapshot{1: one(stopped, int64(n), false)}, 100} }, 2 + maxResumes},
		"one by one":     {func(n int) round { return round{crowd(min(n, 30)), supervisor.LastPID(100 + min(n, 30))} }, 0},
		"new each round": {func(n int) round { return round{Snapshot{n: one(running, 0, true)}, supervisor.LastPID(100 + n)} }, 1 + maxResumes*(2+supervisorThreads)},
		"unknown IDs":    {func(n int) round { return round{Snapshot{n: one(running, 0, true)}, 0} }, 1 + maxChanges},
		"never seen":     {func(n int) round { return round{Snapshot{}, supervisor.LastPID(100 + 1000*n)} }, 1 + maxResumes},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStopCheck(nil, 100)
			for n := range 100 {
				r := c.next(n)
				s.Observe(r.snapshot, r.lastPID)
				if s.KeepsRunning() {
					if n+1 != c.after {
						t.Errorf("after %d rounds, want %d", n+1, c.after)
					}
					return
				}
			}
			if c.after > 0 {
				t.Error("not detected")
			}
		})
	}
}

// crowd returns n stopped processes.
func crowd(n int) Snapshot {
	s := make(Snapshot)
	for pid := range n {
		s[pid] = one(stopped, 5, true)
	}
	return s
}

func TestProcessStoppedByItsProgramIsNotResumed(t *testing.T) {
	before := Snapshot{1: one(stopped, 5, false), 2: one(running, 5, false), 3: one(stopped, 5, false)}
	s := NewStopCheck(before, 100)
	s.Observe(Snapshot{1: one(stopped, 5, true), 2: one(stopped, 6, true), 3: one(stopped, 6, true), 4: one(stopped, 1, true)}, 100)
	for pid, want := range map[int]bool{1: true, 2: false, 3: false, 4: false} {
		if got := s.wasStopped(pid); got != want {
			t.Errorf("process %d: wasStopped = %v, want %v", pid, got, want)
		}
	}
}

// TestChildOfALateProcessIsResumed checks that children of late processes are resumed: a SIGCONT to the
// parent does not discard their SIGSTOP.
func TestChildOfALateProcessIsResumed(t *testing.T) {
	const parent, other, child, its = 1, 2, 3, 4
	childOf := func(parent int, is state) state { is.parent = parent; return is }
	halted := one(stopped, 1, false)
	for name, c := range map[string]struct {
		later []Snapshot // without the process other, which resumes
		check int        // the check in which the child is resumed; 0: none
		late  bool       // at the end
	}{
		"it is created later":        {[]Snapshot{{parent: one(blocked, 5, false)}, {parent: one(running, 6, false), child: childOf(parent, halted)}}, 2, true},
		"its SIGSTOP is pending":     {[]Snapshot{{parent: one(running, 5, false), child: childOf(parent, one(running, 0, true))}}, 1, true},
		"its parent waits for it":    {[]Snapshot{{parent: one(blocked, 5, false), child: childOf(parent, halted)}}, 1, true}, // vfork
		"it is listed late":          {[]Snapshot{{parent: one(sleeping, 6, false)}, {parent: one(sleeping, 6, false), child: childOf(parent, halted)}}, 2, true},
		"the parent is not listed":   {[]Snapshot{{}, {parent: one(blocked, 5, false)}, {parent: one(blocked, 5, false)}, {parent: one(sleeping, 6, false), child: childOf(parent, halted)}}, 4, true},
		"the parent is incomplete":   {[]Snapshot{{parent: {incomplete: true}}, {parent: {incomplete: true}}, {parent: one(sleeping, 6, false), child: childOf(parent, halted)}}, 3, true},
		"the parent has ended":       {[]Snapshot{{child: childOf(99, halted)}}, 1, true},
		"there is no child":          {[]Snapshot{{parent: one(sleeping, 6, false)}, {parent: one(sleeping, 6, false)}}, 0, false},
		"the child runs":             {[]Snapshot{{parent: one(running, 6, false), child: childOf(parent, one(sleeping, 1, false))}}, 0, true},
		"a child of another process": {[]Snapshot{{parent: one(blocked, 5, false), its: childOf(other, halted)}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := Snapshot{parent: one(blocked, 5, true), other: one(stopped, 6, true)}
			s := NewStopCheck(Snapshot{parent: one(blocked, 5, false), other: one(running, 5, false)}, 100)
			s.Observe(all, 100)
			if stopped, _ := s.Observe(all, 100); !stopped || len(s.Stopped()) != 2 || !s.Late() {
				t.Fatalf("stopped %v; resumed %v, late %v", stopped, s.Stopped(), s.Late())
			}
			resumed := 0
			for n, now := range c.later {
				now[other] = one(running, 7, false)
				rest := s.WithoutChildren(now)
				if _, there := rest[child]; there == (n+1 == c.check) && now[child].threads != nil && c.check > 0 {
					t.Errorf("check %d: WithoutChildren returned %v", n+1, rest)
				}
				if made := s.NewChildren(now); slices.Equal(made, []int{child}) {
					resumed = n + 1
				} else if len(made) > 0 {
					t.Errorf("check %d: resumed %v", n+1, made)
				}
				if again := s.children(now); len(again) > 0 {
					t.Errorf("check %d: %v would be resumed again", n+1, again)
				}
			}
			if resumed != c.check || s.Late() != c.late {
				t.Errorf("resumed in check %d, want %d; late %v", resumed, c.check, s.Late())
			}
		})
	}
}

// TestProcessSeenStoppedOnceIsLate checks that a process is late unless it was seen stopped twice. A
// list of processes is older than their states, so it may lack a child created just before.
func TestProcessSeenStoppedOnceIsLate(t *testing.T) {
	const parent, child = 1, 2
	made := one(stopped, 1, false)
	made.parent = parent
	s := NewStopCheck(nil, 100)
	s.Observe(Snapshot{parent: one(stopped, 5, true)}, 100)
	if halted := s.Stopped(); !slices.Equal(halted, []int{parent}) || !s.Late() {
		t.Fatalf("resumed %v, late %v", halted, s.Late())
	}
	if got := s.NewChildren(Snapshot{parent: one(sleeping, 6, false), child: made}); !slices.Equal(got, []int{child}) {
		t.Errorf("resumed %v, want the child", got)
	}
}

// TestGrandchildOfALateProcessIsResumed checks that children of such a child are resumed too: it may have
// received SIGSTOP while it was creating one.
func TestGrandchildOfALateProcessIsResumed(t *testing.T) {
	const parent, child, its = 1, 2, 3
	s := NewStopCheck(nil, 100)
	s.Observe(Snapshot{parent: one(blocked, 5, true)}, 100)
	s.Stopped()
	first, second := one(blocked, 1, true), one(stopped, 1, false)
	first.parent, second.parent = parent, child
	for n, now := range []Snapshot{{parent: one(sleeping, 6, false), child: first}, {parent: one(sleeping, 6, false), child: first, its: second}} {
		if got, want := s.NewChildren(now), []int{child, its}[n:n+1]; !slices.Equal(got, want) {
			t.Errorf("check %d: resumed %v, want %v", n+1, got, want)
		}
	}
}

// TestOtherThreadsDoNotMakeAProcessLate checks that threads that were stopped, and those created later, do
// not make a process late.
func TestOtherThreadsDoNotMakeAProcessLate(t *testing.T) {
	of := func(threads ...activity) state {
		s := state{threads: make(map[int]thread)}
		for id, does := range threads {
			s.threads[id] = thread{does, 5}
		}
		return s
	}
	s := NewStopCheck(nil, 100)
	s.Observe(Snapshot{1: of(blocked, stopped)}, 100)
	s.Stopped()
	for checks := range 2 {
		if s.NewChildren(Snapshot{1: of(sleeping, blocked, blocked)}); s.Late() == (checks == 1) {
			t.Errorf("check %d: late %v", checks+1, s.Late())
		}
	}
}

// TestLatenessIsBounded checks how long a process stays late, depending on its activity. Only waiting has
// no bound.
func TestLatenessIsBounded(t *testing.T) {
	for does, want := range map[activity]int{running: maxChecks, sleeping: 2, stopped: 2, blocked: 100} {
		s := NewStopCheck(nil, 100)
		s.Observe(Snapshot{1: one(blocked, 5, true)}, 100)
		s.Stopped()
		checks := 0
		for ; s.Late() && checks < 100; checks++ {
			s.NewChildren(Snapshot{1: one(does, 6, false)})
		}
		if checks != want {
			t.Errorf("activity %d: late for %d checks, want %d", does, checks, want)
		}
	}
}

// TestProcessStoppedBeforeTheHaltStaysStopped checks that a process that was stopped before the halt is not
// resumed, even without a check since.
func TestProcessStoppedBeforeTheHaltStaysStopped(t *testing.T) {
	s := NewStopCheck(Snapshot{1: one(stopped, 5, false), 2: one(running, 5, false)}, 100)
	if halted := s.Stopped(); !slices.Equal(halted, []int{2}) || !s.Late() {
		t.Errorf("resumed %v, late %v", halted, s.Late())
	}
}

// TestEndedProcessIsNotResumed checks that the ID of an ended process is not signaled, since it may have been
// reused. A process that one snapshot missed is still resumed.
func TestEndedProcessIsNotResumed(t *testing.T) {
	s := NewStopCheck(Snapshot{1: one(running, 5, false), 2: one(running, 5, false)}, 100)
	for _, now := range []Snapshot{{1: one(stopped, 6, true), 2: one(stopped, 6, true)}, {1: one(stopped, 6, true), 2: one(stopped, 6, true)}, {1: one(stopped, 6, true)}} {
		s.Observe(now, 100)
		if n := len(s.Stopped()); n != 2 {
			t.Fatalf("%d processes to resume, want 2", n)
		}
	}
	if stopped, _ := s.Observe(Snapshot{1: one(stopped, 6, true)}, 100); !stopped || !slices.Equal(s.Stopped(), []int{1}) {
		t.Errorf("stopped %v; to resume: %v", stopped, s.Stopped())
	}
	for range 2 {
		s.Observe(Snapshot{}, 100)
	}
	if !slices.Equal(s.Stopped(), []int{1}) {
		t.Errorf("after empty snapshots, to resume: %v", s.Stopped())
	}
}
