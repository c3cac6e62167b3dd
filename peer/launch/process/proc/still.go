package proc

import (
	"maps"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// A Stillness determines when the processes of one program, which were all sent SIGSTOP at one moment, have
// stopped, and whether something keeps resuming them.
//
// A process stops before its next instruction in user space. A system call in progress completes first,
// which may take long. A stopped process remains stopped until it receives SIGCONT: from a timer of its
// own, or from another process that has not stopped yet or was resumed. A child inherits the SIGSTOP that
// its parent receives while it creates the child. The check therefore works in rounds: inspect all
// processes, then send SIGSTOP to all again.
//
//	scene ── SIGSTOP ── (measure) ── scene ── SIGSTOP
//
// Nothing has run if both scenes are equal and no process or thread was created between the first SIGSTOP
// and the second.
//
// A process counts as resumed if it runs after it was stopped. It also counts as resumed if it takes a
// second SIGSTOP: once stopped, the repeated signal stays pending until SIGCONT discards it. More births
// than threads that could be creating one also prove a resumed process. An honest process can be hit by a
// SIGCONT in transit, but not repeatedly. Where births are unknown, changes in many rounds by processes
// that were not there at the first SIGSTOP count like resumed processes.
//
// A process that has not stopped when all are resumed may be creating a child. The child inherits the
// SIGSTOP and is stopped as soon as it exists, and a SIGCONT to the parent does not reach it. The Stillness
// looks for such children until the parent has completed its system call.
//
// A Stillness is a pure state machine: states from the kernel go in, conclusions come out.
type Stillness struct {
	seen    bool // the processes were seen at least once
	first   Scene
	scene   Scene
	born    supervisor.Born
	births  int            // since the first SIGSTOP, or since there were too many
	threads int            // largest number of threads
	takes   map[int]int    // how often each process has taken a SIGSTOP
	slips   map[int]int    // how often each stopped thread has left a processor
	before  map[int]stance // states before the first SIGSTOP
	known   map[int]bool   // all processes ever seen, except those that ended before all had stopped
	woken   int            // rounds in which a process was certainly resumed
	moved   int            // rounds in which a process other than a late one has run
	still   bool           // none has run between the last two scenes
	late    map[int]int    // processes resumed before they had stopped: consecutive looks in which each did not wait
}

// A Scene is the state of a set of processes, by process ID.
type Scene map[int]stance

// A stance is the state of a process that has not ended.
type stance struct {
	threads map[int]thread
	parent  int
	told    bool // a SIGSTOP is pending
	ends    bool // it is being killed, and takes no more signals
	unseen  bool // not all of it could be inspected
}

// A thread is the state of a thread: its activity, and its number of context switches. A thread that does
// not run has not run since an earlier state with the same number.
type thread struct {
	does  activity
	turns int64
}

type activity int8

const (
	runs   activity = iota // or is runnable
	rests                  // sleeps until an event or a signal
	waits                  // in an uninterruptible system call
	stands                 // stopped
)

// How often honest processes may seem to be resumed until all have stopped. The interval between rounds
// should grow with the time that this takes.
const (
	mostWoken   = 3
	mostMoved   = 16
	spareBirths = 16 // for the supervisor's threads
	mostLooks   = 64 // looks, at growing intervals, at a running process that may be creating a child
	lastLook    = 32 // looks credited to a stopped process, so that one more follows: a new child may be missing in this list
)

// NewStillness returns a Stillness for processes that were in the state before when they were first
// stopped; born was the last process or thread ID then. Processes that are already stopped count as asleep:
// their own program has stopped them.
func NewStillness(before Scene, born supervisor.Born) *Stillness {
	s := &Stillness{before: before, born: born, takes: make(map[int]int), slips: make(map[int]int), known: make(map[int]bool)}
	s.meet(before)
	return s
}

func (s *Stillness) meet(all Scene) {
	for pid := range all {
		s.known[pid] = true
	}
}

// See records the state of the processes, and the last process or thread ID when they were then sent
// SIGSTOP again.
// still reports whether none has run since the last call. roused reports whether one was certainly resumed
// since then.
func (s *Stillness) See(now Scene, born supervisor.Born) (still, roused bool) {
	last, first, births := s.scene, !s.seen, birthsSince(s.born, born)
	s.births += births
	s.seen, s.scene, s.born = true, now, born
	s.meet(now)
	if first {
		s.first = now
		return false, false
	}
	changed, late := s.compare(last, now)
	changed = changed || births > 0
	if roused = s.wakes(last, now); roused {
		s.woken++
	} else if changed && (!late || births > 0) {
		s.moved++
	}
	if s.still = !changed && now.quiet(); s.still && len(now) > 0 {
		s.forget()
	}
	return s.still, roused
}

// forget removes the processes that have ended while the others were stopped. The kernel may later reuse
// their IDs for other processes, such as the owner's own.
func (s *Stillness) forget() {
	maps.DeleteFunc(s.known, func(pid int, _ bool) bool {
		_, there := s.scene[pid]
		return !there
	})
}

// birthsSince returns the number of processes and threads created between two times. It returns 1 if the
// number is unknown, because the IDs have wrapped around or could not be read.
func birthsSince(last, now supervisor.Born) int {
	if now < last || last == 0 && now > 0 {
		return 1
	}
	return int(now - last)
}

// Restless reports whether the processes do not stop. Outside a sandbox, where they are not stopped at one
// moment, this may be chance. Where births are counted, only processes that are resumed or created can run;
// the last of them may take long on a busy machine.
func (s *Stillness) Restless() bool {
	return s.woken >= mostWoken || s.born == 0 && s.moved >= mostMoved
}

// compare reports whether a process has run, and whether all that have may still be in the system call
// during which they received the first SIGSTOP.
func (s *Stillness) compare(last, now Scene) (changed, late bool) {
	late = true
	for pid, is := range now {
		was, there := last[pid]
		if there && was.same(is) {
			continue
		}
		changed = true
		_, known := s.first[pid]
		late = late && known && s.takes[pid] < 2
	}
	for pid := range last {
		if _, there := now[pid]; there {
			continue
		}
		changed = true
		_, known := s.first[pid]
		late = late && known
	}
	return changed, late
}

// wakes reports whether a process has certainly run after it was stopped.
func (s *Stillness) wakes(last, now Scene) (woken bool) {
	threads := 0
	for pid, is := range now {
		threads += len(is.threads)
		was, there := last[pid]
		if !there || is.ends {
			continue
		}
		if !is.told && !was.same(is) {
			s.takes[pid]++
			woken = woken || s.takes[pid] > 1
		}
		for id, t := range is.threads {
			if before, there := was.threads[id]; there && before.does == stands && t != before {
				s.slips[id]++ // a thread counts as stopped shortly before it leaves the processor
				woken = woken || t.does != stands || s.slips[id] > 1
			}
		}
	}
	if s.threads = max(s.threads, threads); s.births > s.threads+spareBirths {
		s.births, woken = 0, true
	}
	return woken
}

// some reports whether a thread has the given activity.
func (s stance) some(does activity) bool {
	for _, t := range s.threads {
		if t.does == does {
			return true
		}
	}
	return false
}

// stood reports whether all threads of the process were stopped.
func (s stance) stood() bool {
	return len(s.threads) > 0 && !s.unseen && !s.some(runs) && !s.some(rests) && !s.some(waits)
}

// same reports whether the process has not run between two states.
func (s stance) same(o stance) bool { return maps.Equal(s.threads, o.threads) }

// quiet reports whether no thread runs or can be woken by a signal.
func (s Scene) quiet() bool {
	for _, p := range s {
		if p.unseen {
			return false
		}
		for _, t := range p.threads {
			if t.does == runs || t.does == rests {
				return false
			}
		}
	}
	return true
}

// Halted returns the processes that must be resumed: all that SIGSTOP has stopped, and those created
// meanwhile, except those that are asleep.
func (s *Stillness) Halted() (pids []int) {
	s.late = make(map[int]int)
	for pid := range s.known {
		if s.asleep(pid) {
			continue
		}
		pids = append(pids, pid)
		switch {
		case !s.scene[pid].stood():
			s.late[pid] = 0
		case !s.still:
			s.late[pid] = lastLook
		}
	}
	return pids
}

// Late reports whether some processes were resumed before they had stopped, and may still be creating a
// child.
func (s *Stillness) Late() bool { return len(s.late) > 0 }

// Made returns the children of late processes that must be resumed now. The caller passes the current
// state, as long as Late reports true.
func (s *Stillness) Made(now Scene) (pids []int) {
	pids = s.children(now)
	for pid := range s.late {
		switch is := now[pid].without(s.scene[pid]); {
		case is.unseen || is.some(waits):
			s.late[pid] = 0
		case is.some(runs):
			s.late[pid]++
		default:
			s.late[pid] += mostLooks - lastLook
		}
	}
	maps.DeleteFunc(s.late, func(_, looks int) bool { return looks >= mostLooks })
	for _, pid := range pids {
		s.known[pid], s.late[pid] = true, 0 // it may have received SIGSTOP while it was creating a child itself
	}
	return pids
}

// without returns s without the threads that were stopped in stood, and without those created later.
func (s stance) without(stood stance) stance {
	if len(stood.threads) == 0 || stood.unseen {
		return s
	}
	s.threads = maps.Clone(s.threads)
	maps.DeleteFunc(s.threads, func(id int, _ thread) bool {
		was, there := stood.threads[id]
		return !there || was.does == stands
	})
	return s
}

// Awake returns the scene without the children that are stopped because their parent was late.
func (s *Stillness) Awake(now Scene) Scene {
	awake := maps.Clone(now)
	for _, pid := range s.children(now) {
		delete(awake, pid)
	}
	return awake
}

// children returns the new processes that are stopped, or have a SIGSTOP pending, and that a late process
// has created.
func (s *Stillness) children(now Scene) (pids []int) {
	gone := false
	for pid := range s.late {
		_, there := now[pid]
		gone = gone || !there
	}
	for pid, is := range now {
		_, late := s.late[is.parent]
		_, there := now[is.parent]
		if (late || gone && !there) && !s.known[pid] && (is.told || is.some(stands)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// asleep reports whether a process was stopped before the halt and has not run since. Its own program has
// stopped it, so it must not be resumed.
func (s *Stillness) asleep(pid int) bool {
	before, there := s.before[pid]
	if !there || s.seen && !s.scene[pid].same(before) {
		return false
	}
	for _, t := range before.threads {
		if t.does != stands {
			return false
		}
	}
	return true
}
