package launch

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
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
	stopped []int         // processes that the program itself had stopped before
	ran     time.Duration // processor time until the last round
	awake   int           // rounds in a row in which it ran
	late    time.Time     // until then, some processes may stop although all were resumed
}

const (
	// suspendedRound is the interval at which suspended processes are stopped again.
	suspendedRound = time.Second
	// awakeShare is the part of a round, as its divisor, in which a suspended process may run.
	awakeShare = 10
	// maxAwake is the number of rounds in a row after which a process that runs is ended. An honest process
	// runs only until its system call in progress returns.
	maxAwake = 5
	// lateStop bounds the time until a process has stopped, or has created a child that stops.
	lateStop = 10 * time.Second
)

// keepSuspended keeps all processes suspended until the job resumes. It ends those that run nevertheless,
// such as a program with a timer that sends it SIGCONT.
func (g *guard) keepSuspended() {
	g.suspend()
	defer g.resume()
	for g.job.suspended.Load() {
		begun := time.Now()
		select {
		case <-time.After(suspendedRound):
		case <-g.job.ctx.Done():
			return
		}
		g.endAwake(time.Since(begun))
		g.check()
		for _, m := range g.live() {
			m.live.program.Suspend()
		}
	}
}

// suspend stops all processes of the job.
func (g *guard) suspend() {
	g.job.halting.Store(halted)
	pids := g.processes()
	for _, m := range g.live() {
		m.suspension = suspension{stopped: proc.Stopped(pids[m]), ran: m.processorTime(pids[m])}
		m.live.program.Suspend()
	}
}

// resume resumes the processes, except those that their own program has stopped.
func (g *guard) resume() {
	pids := g.processes()
	for _, m := range g.live() {
		if len(proc.Stopped(pids[m])) < len(pids[m]) {
			m.suspension.late = fromNow(lateStop)
		}
		proc.Resume(without(pids[m], m.suspension.stopped))
	}
	g.job.halting.Store(resumedLately)
}

// resumeLate resumes processes that have stopped only after the job was resumed, such as the child that a
// process was creating. The kernel stops the child as soon as it exists, because of the signal to its parent,
// and SIGCONT to the parent does not reach it.
func (g *guard) resumeLate() {
	for _, m := range g.live() {
		if s := m.suspension; time.Now().Before(s.late) {
			proc.Resume(without(proc.Stopped(g.processes()[m]), s.stopped))
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

// endAwake ends the processes that ran in each of the last rounds, the last of which took the given time.
func (g *guard) endAwake(took time.Duration) {
	pids := g.processes()
	for _, m := range g.live() {
		ran := m.processorTime(pids[m])
		if m.suspension.awake++; ran-m.suspension.ran < took/awakeShare {
			m.suspension.awake = 0
		}
		if m.suspension.ran = ran; m.suspension.awake == maxAwake {
			g.end(m, errNotSuspended)
		}
	}
}

// processorTime returns the processor time of a process and its descendants so far. That of descendants that
// have ended is in the time of the supervisor, which has waited for them.
func (m *meter) processorTime(pids []int) time.Duration {
	return proc.CPUTime(append(pids, m.live.program.Supervisor()))
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
