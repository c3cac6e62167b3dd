package launch

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// errNotSuspended is the error of a process that does not remain suspended.
var errNotSuspended = errors.New("the process did not remain suspended")

// States of a job's processes with respect to the owner's suspension.
const (
	notHalted     int32 = iota
	halted              // suspended, or being suspended
	resumedLately       // running again, after a suspension since the last call of excused
)

// halting is one of these states.
type halting struct{ atomic.Int32 }

// excused reports whether processes may have missed a question because they were suspended.
func (h *halting) excused() bool {
	return h.Load() == halted || h.CompareAndSwap(resumedLately, notHalted)
}

// A suspension is the state of a process, with its descendants, that is or was suspended for the owner.
type suspension struct {
	stopped   []int // processes that the program itself had stopped before
	last      look
	awake     int             // rounds in which it ran
	late      time.Time       // until then, some processes may stop although all were resumed
	requested <-chan struct{} // closed when the last call of Suspend has returned; nil before the first
}

// A look is an observation of a process with its descendants.
type look struct {
	at        time.Time
	pids      []int
	ran, user time.Duration // processor time so far, and the part outside the kernel
}

const (
	// suspendedRound is the interval at which suspended processes are stopped again.
	suspendedRound = time.Second
	// awakeShare and userShare are the parts of a round, as divisors, in which a suspended process may run, and
	// may run outside the kernel. An honest process runs only until its system call in progress returns. A
	// write to a slow disk may take many rounds, but little time, all of it in the kernel.
	awakeShare, userShare = 10, 50
	// maxAwake is the number of rounds of a suspension after which a process that ran more is ended.
	maxAwake = 5
	// stopTimeout bounds the wait for the supervisors that stop the programs.
	stopTimeout = 100 * time.Millisecond
	// lateStop bounds the time until a process has stopped, or has created a child that stops.
	lateStop = 10 * time.Second
)

// keepSuspended keeps all processes suspended until the job resumes. It ends those that run nevertheless,
// such as a program with a timer that sends it SIGCONT.
func (g *guard) keepSuspended() {
	g.suspend()
	defer g.resume()
	for round := fromNow(suspendedRound); g.job.suspended.Load(); {
		select {
		case <-time.After(min(time.Until(round), limits.Pause(g.aboveFloor()))):
		case <-g.job.ctx.Done():
			return
		}
		g.keepFloor()
		if time.Now().Before(round) {
			continue
		}
		round = fromNow(suspendedRound)
		if g.endAwake() {
			g.check()
		} else {
			g.measureDue(false) // no files have changed
		}
		g.stopPrograms()
	}
}

// suspend stops all processes of the job.
func (g *guard) suspend() {
	g.job.halting.Store(halted)
	pids := g.processes()
	for _, m := range g.live() {
		s := &m.suspension
		stopped := proc.Stopped(pids[m])
		if time.Now().Before(s.late) { // the others have stopped because of the last suspension
			stopped = without(stopped, without(stopped, s.stopped))
		}
		*s = suspension{stopped: stopped, last: m.look(pids[m]), requested: s.requested}
	}
	g.stopPrograms()
}

// stopPrograms makes the supervisors stop the programs, and waits for them up to stopTimeout. A supervisor that
// its program has stopped does not answer until it is killed.
func (g *guard) stopPrograms() {
	late := time.After(stopTimeout)
	for _, m := range g.live() {
		m.requestStop()
	}
	for _, m := range g.live() {
		select {
		case <-m.suspension.requested:
		case <-late:
			return
		}
	}
}

// requestStop calls Suspend without waiting, unless the last call has not returned yet.
func (m *meter) requestStop() {
	if before := m.suspension.requested; before != nil {
		select {
		case <-before:
		default:
			return
		}
	}
	done := make(chan struct{})
	m.suspension.requested = done
	go func() { // until the supervisor answers, or its program has ended
		defer close(done)
		m.live.program.Suspend()
	}()
}

// resume resumes the processes, except those that their own program has stopped.
func (g *guard) resume() {
	pids := g.processes()
	for _, m := range g.live() {
		m.suspension.late = fromNow(lateStop)
		proc.Resume(without(pids[m], m.suspension.stopped))
	}
	g.count = time.Time{} // resumeLate is due
	g.job.halting.Store(resumedLately)
}

// resumeLate resumes processes that are still stopped, although the job was resumed: resume may not have found
// all, and some may have stopped only afterwards, such as the child that a process was creating. The kernel
// stops the child as soon as it exists, because of the signal to its parent, and SIGCONT to the parent does not
// reach it.
func (g *guard) resumeLate(pids map[*meter][]int) {
	for _, m := range g.live() {
		if s := m.suspension; time.Now().Before(s.late) {
			proc.Resume(without(proc.Stopped(pids[m]), s.stopped))
		}
	}
}

// without returns the IDs that are not among some.
func without(pids, some []int) (others []int) {
	for _, pid := range pids {
		if !slices.Contains(some, pid) {
			others = append(others, pid)
		}
	}
	return others
}

// endAwake ends the processes that ran in too many rounds of the suspension. It reports whether any process may
// have run since the last call.
func (g *guard) endAwake() (ran bool) {
	pids := g.processes()
	for _, m := range g.live() {
		ran = m.suspension.observe(m.look(pids[m])) || ran
		if m.suspension.awake >= maxAwake {
			g.end(m, errNotSuspended)
		}
	}
	return ran
}

// observe counts the round since the last look if the process ran in it. It reports whether the process may have
// run at all. The time of a process that has ended can vanish, if its parent does not wait for it.
func (s *suspension) observe(now look) bool {
	if len(now.pids) == 0 {
		return true // the processes could not be listed
	}
	took, ran, user := now.at.Sub(s.last.at), now.ran-s.last.ran, now.user-s.last.user
	created := len(without(now.pids, s.last.pids)) > 0
	if ran < 0 || ran > took/awakeShare || user > took/userShare || created {
		s.awake++
	}
	s.last = now
	return ran != 0 || created
}

// look observes the process. The time of descendants that have ended is in that of the supervisor, which has
// waited for them.
func (m *meter) look(pids []int) look {
	user, system := proc.CPUTimes(pids)
	endedUser, endedSystem := proc.CPUTimesOfChildren(m.live.program.Supervisor())
	user += endedUser
	return look{at: time.Now(), pids: pids, ran: user + system + endedSystem, user: user}
}

// live returns the meters whose processes exist and are not to be killed.
func (g *guard) live() (all []*meter) {
	for _, m := range g.meters {
		if m.process.ctx.Err() == nil && !m.over {
			all = append(all, m)
		}
	}
	return all
}
