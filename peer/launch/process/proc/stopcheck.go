package proc

import (
	"maps"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// A StopCheck determines when the processes of one program, which were all sent SIGSTOP at one moment, have
// stopped, and whether something keeps resuming them.
//
// A process stops before its next instruction in user space. A system call in progress completes first,
// which may take long. A stopped process remains stopped until it receives SIGCONT: from a timer of its
// own, or from another process that has not stopped yet or was resumed. A child inherits the SIGSTOP that
// its parent receives while it creates the child. The check therefore works in rounds: inspect all
// processes, then send SIGSTOP to all again.
//
//	snapshot ── SIGSTOP ── (measure) ── snapshot ── SIGSTOP
//
// Nothing has run if both snapshots are equal and no process or thread was created between the first SIGSTOP
// and the second.
//
// A process counts as resumed if it runs after it was stopped. It also counts as resumed if it takes a
// second SIGSTOP: once stopped, the repeated signal stays pending until SIGCONT discards it. More new
// processes than threads that could be creating one also prove a resumed process. An honest process can be
// hit by a SIGCONT in transit, but not repeatedly. Where the number of new processes is unknown, changes in
// many rounds by processes that were not there at the first SIGSTOP count like resumed processes.
//
// A process that has not stopped when all are resumed may be creating a child. The child inherits the
// SIGSTOP and is stopped as soon as it exists, and a SIGCONT to the parent does not reach it. The StopCheck
// looks for such children until the parent has completed its system call.
//
// A StopCheck is a pure state machine: states from the kernel go in, conclusions come out.
type StopCheck struct {
	seen      bool // the processes were seen at least once
	first     Snapshot
	last      Snapshot
	lastPID   supervisor.LastPID
	created   int           // processes and threads created since the first SIGSTOP, or since there were too many
	threads   int           // largest number of threads
	stops     map[int]int   // how often each process has taken a SIGSTOP
	left      map[int]int   // how often each stopped thread has left its processor
	before    map[int]state // states before the first SIGSTOP
	known     map[int]bool  // all processes ever seen, except those that ended before all had stopped
	resumes   int           // rounds in which a process was certainly resumed
	changes   int           // rounds in which a process other than a late one has run
	unchanged bool          // none has run between the last two snapshots
	late      map[int]int   // processes resumed before they had stopped: consecutive checks in which each did not wait
}

// A Snapshot is the state of a set of processes, by process ID.
type Snapshot map[int]state

// A state is the state of a process that has not ended.
type state struct {
	threads     map[int]thread
	parent      int
	stopPending bool // a SIGSTOP is pending
	dying       bool // it is being killed, and takes no more signals
	incomplete  bool // not all of it could be inspected
}

// A thread is the state of a thread: its activity, and its number of context switches. A thread that does
// not run has not run since an earlier state with the same number.
type thread struct {
	activity activity
	switches int64
}

type activity int8

const (
	running  activity = iota // or is runnable
	sleeping                 // sleeps until an event or a signal
	blocked                  // in an uninterruptible system call
	stopped                  // stopped
)

// How often honest processes may seem to be resumed until all have stopped. The interval between rounds
// should grow with the time that this takes.
const (
	maxResumes        = 3
	maxChanges        = 16
	supervisorThreads = 16 // for the supervisor's threads
	maxChecks         = 64 // checks, at growing intervals, of a running process that may be creating a child
	lastCheck         = 32 // checks credited to a stopped process, so that one more follows: a new child may be missing in this list
)

// NewStopCheck returns a StopCheck for processes that were in the state before when they were first
// stopped; pid was the last process or thread ID then. Processes that are already stopped stay stopped: their
// own program has stopped them.
func NewStopCheck(before Snapshot, pid supervisor.LastPID) *StopCheck {
	s := &StopCheck{before: before, lastPID: pid, stops: make(map[int]int), left: make(map[int]int), known: make(map[int]bool)}
	s.learn(before)
	return s
}

func (s *StopCheck) learn(all Snapshot) {
	for pid := range all {
		s.known[pid] = true
	}
}

// Observe records the state of the processes, and the last process or thread ID when they were then sent
// SIGSTOP again. stopped reports whether none has run since the last call. resumed reports whether one was
// certainly resumed since then.
func (s *StopCheck) Observe(now Snapshot, pid supervisor.LastPID) (stopped, resumed bool) {
	last, first, created := s.last, !s.seen, createdSince(s.lastPID, pid)
	s.created += created
	s.seen, s.last, s.lastPID = true, now, pid
	s.learn(now)
	if first {
		s.first = now
		return false, false
	}
	changed, late := s.compare(last, now)
	changed = changed || created > 0
	if resumed = s.resumed(last, now); resumed {
		s.resumes++
	} else if changed && (!late || created > 0) {
		s.changes++
	}
	if s.unchanged = !changed && now.quiet(); s.unchanged && len(now) > 0 {
		s.forget()
	}
	return s.unchanged, resumed
}

// forget removes the processes that have ended while the others were stopped. The kernel may later reuse
// their IDs for other processes, such as the owner's own.
func (s *StopCheck) forget() {
	maps.DeleteFunc(s.known, func(pid int, _ bool) bool {
		_, there := s.last[pid]
		return !there
	})
}

// createdSince returns the number of processes and threads created between two times. It returns 1 if the
// number is unknown, because the IDs have wrapped around or could not be read.
func createdSince(last, now supervisor.LastPID) int {
	if now < last || last == 0 && now > 0 {
		return 1
	}
	return int(now - last)
}

// KeepsRunning reports whether the processes do not stop. Outside a sandbox, where they are not stopped at
// one moment, this may be chance. Where new processes are counted, only processes that are resumed or
// created can run; the last of them may take long on a busy machine.
func (s *StopCheck) KeepsRunning() bool {
	return s.resumes >= maxResumes || s.lastPID == 0 && s.changes >= maxChanges
}

// compare reports whether a process has run, and whether all that have may still be in the system call
// during which they received the first SIGSTOP.
func (s *StopCheck) compare(last, now Snapshot) (changed, late bool) {
	late = true
	for pid, is := range now {
		was, there := last[pid]
		if there && was.unchanged(is) {
			continue
		}
		changed = true
		_, known := s.first[pid]
		late = late && known && s.stops[pid] < 2
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

// resumed reports whether a process has certainly run after it was stopped.
func (s *StopCheck) resumed(last, now Snapshot) (certain bool) {
	threads := 0
	for pid, is := range now {
		threads += len(is.threads)
		was, there := last[pid]
		if !there || is.dying {
			continue
		}
		if !is.stopPending && !was.unchanged(is) {
			s.stops[pid]++
			certain = certain || s.stops[pid] > 1
		}
		for id, t := range is.threads {
			if before, there := was.threads[id]; there && before.activity == stopped && t != before {
				s.left[id]++ // a thread counts as stopped shortly before it leaves the processor
				certain = certain || t.activity != stopped || s.left[id] > 1
			}
		}
	}
	if s.threads = max(s.threads, threads); s.created > s.threads+supervisorThreads {
		s.created, certain = 0, true
	}
	return certain
}

// any reports whether a thread has the given activity.
func (s state) any(does activity) bool {
	for _, t := range s.threads {
		if t.activity == does {
			return true
		}
	}
	return false
}

// isStopped reports whether all threads of the process were stopped.
func (s state) isStopped() bool {
	return len(s.threads) > 0 && !s.incomplete && !s.any(running) && !s.any(sleeping) && !s.any(blocked)
}

// unchanged reports whether the process has not run between two states.
func (s state) unchanged(o state) bool { return maps.Equal(s.threads, o.threads) }

// quiet reports whether no thread runs or can be woken by a signal.
func (s Snapshot) quiet() bool {
	for _, p := range s {
		if p.incomplete {
			return false
		}
		for _, t := range p.threads {
			if t.activity == running || t.activity == sleeping {
				return false
			}
		}
	}
	return true
}

// Stopped returns the processes that must be resumed: all that SIGSTOP has stopped, and those created
// meanwhile, except those that their own program had stopped.
func (s *StopCheck) Stopped() (pids []int) {
	s.late = make(map[int]int)
	for pid := range s.known {
		if s.wasStopped(pid) {
			continue
		}
		pids = append(pids, pid)
		switch {
		case !s.last[pid].isStopped():
			s.late[pid] = 0
		case !s.unchanged:
			s.late[pid] = lastCheck
		}
	}
	return pids
}

// Late reports whether some processes were resumed before they had stopped, and may still be creating a
// child.
func (s *StopCheck) Late() bool { return len(s.late) > 0 }

// NewChildren returns the children of late processes that must be resumed now. The caller passes the current
// state, as long as Late reports true.
func (s *StopCheck) NewChildren(now Snapshot) (pids []int) {
	pids = s.children(now)
	for pid := range s.late {
		switch is := now[pid].without(s.last[pid]); {
		case is.incomplete || is.any(blocked):
			s.late[pid] = 0
		case is.any(running):
			s.late[pid]++
		default:
			s.late[pid] += maxChecks - lastCheck
		}
	}
	maps.DeleteFunc(s.late, func(_, checks int) bool { return checks >= maxChecks })
	for _, pid := range pids {
		s.known[pid], s.late[pid] = true, 0 // it may have received SIGSTOP while it was creating a child itself
	}
	return pids
}

// without returns s without the threads that were stopped in before, and without those created later.
func (s state) without(before state) state {
	if len(before.threads) == 0 || before.incomplete {
		return s
	}
	s.threads = maps.Clone(s.threads)
	maps.DeleteFunc(s.threads, func(id int, _ thread) bool {
		was, there := before.threads[id]
		return !there || was.activity == stopped
	})
	return s
}

// WithoutChildren returns the snapshot without the children that are stopped because their parent was late.
func (s *StopCheck) WithoutChildren(now Snapshot) Snapshot {
	rest := maps.Clone(now)
	for _, pid := range s.children(now) {
		delete(rest, pid)
	}
	return rest
}

// children returns the new processes that are stopped, or have a SIGSTOP pending, and that a late process
// has created.
func (s *StopCheck) children(now Snapshot) (pids []int) {
	gone := false
	for pid := range s.late {
		_, there := now[pid]
		gone = gone || !there
	}
	for pid, is := range now {
		_, late := s.late[is.parent]
		_, there := now[is.parent]
		if (late || gone && !there) && !s.known[pid] && (is.stopPending || is.any(stopped)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// wasStopped reports whether a process was stopped before the halt and has not run since. Its own program has
// stopped it, so it must not be resumed.
func (s *StopCheck) wasStopped(pid int) bool {
	before, there := s.before[pid]
	if !there || s.seen && !s.last[pid].unchanged(before) {
		return false
	}
	for _, t := range before.threads {
		if t.activity != stopped {
			return false
		}
	}
	return true
}
