package launch

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/walk"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// errNotStopped is the error of a process that keeps being resumed during the measurement.
var errNotStopped = errors.New("the process could not be stopped for disk accounting")

// States of a job's processes with respect to the guard.
const (
	notHalted     int32 = iota
	halted              // stopped, or being stopped, for the guard
	resumedLately       // running again, after a halt since the last call of excused
)

// excused reports whether processes may have missed a question because the guard stopped them.
func (j *job) excused() bool {
	return j.halting.Load() == halted || j.halting.CompareAndSwap(resumedLately, notHalted)
}

// halt stops all processes of the job. The init process of a sandbox's PID namespace stops all its
// processes at once; processes outside a sandbox are stopped one by one.
func (g *guard) halt() {
	g.job.halting.Store(halted)
	g.late = time.Time{}
	for _, m := range g.meters {
		m.before, m.resumed = 0, false
	}
	snapshots := g.snapshots()
	for m, r := range stopAll(snapshots) {
		before := snapshots[m]
		if m.stop != nil {
			before = m.stop.WithoutChildren(before)
		}
		m.stop = proc.NewStopCheck(before, r.lastPID)
	}
}

// resume resumes the processes, except those that are to be killed or were stopped before the halt.
func (g *guard) resume() {
	for _, m := range g.live() {
		proc.Resume(m.stop.Stopped())
		if m.stop.Late() {
			g.late = fromNow(time.Millisecond)
		}
	}
	g.job.halting.Store(resumedLately)
	g.resumedAt = time.Now()
}

// resumeLate resumes processes that were still being created when the others were resumed. It looks for them
// often at first, then at growing intervals.
func (g *guard) resumeLate() {
	if g.late.IsZero() || time.Now().Before(g.late) {
		return
	}
	begun, late := time.Now(), false
	pids := g.processes()
	for _, m := range g.live() {
		if m.stop != nil && m.stop.Late() { // otherwise the process was added since the halt
			proc.Resume(m.stop.NewChildren(proc.SnapshotOf(pids[m])))
			late = late || m.stop.Late()
		}
	}
	if g.late = (time.Time{}); late {
		next := min(time.Since(g.resumedAt)/urgentShare, countEvery)
		g.late = fromNow(max(time.Millisecond, next, idleShare*time.Since(begun)))
	}
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

// snapshots returns the state of the threads of each meter's processes.
func (g *guard) snapshots() map[*meter]proc.Snapshot {
	pids, all := g.processes(), make(map[*meter]proc.Snapshot)
	for _, m := range g.live() {
		all[m] = proc.SnapshotOf(pids[m])
	}
	return all
}

// pidsValidFor is how long the IDs in a snapshot are used. Later, the kernel may have reused them for other
// processes, such as the owner's own.
const pidsValidFor = time.Second

// A reply is a supervisor's reply to Halt.
type reply struct {
	lastPID supervisor.LastPID
	err     error
}

// stopAll stops all processes: where possible all those of a program at once, then each thread that still
// runs.
func stopAll(snapshots map[*meter]proc.Snapshot) map[*meter]reply {
	replies := make(map[*meter]reply)
	var mu sync.Mutex
	var stopping sync.WaitGroup
	for m, s := range snapshots {
		stopping.Go(func() {
			var r reply
			begun := time.Now()
			if m.live.program.InPIDNamespace() {
				r.lastPID, r.err = m.live.program.Halt()
			}
			if r.err == nil && time.Since(begun) < pidsValidFor {
				s.Stop()
			}
			mu.Lock()
			defer mu.Unlock()
			replies[m] = r
		})
	}
	stopping.Wait()
	return replies
}

// measureStopped measures the disk usage of all processes while they are stopped, and ends those that exceed
// the limit. A measurement counts if no process ran during it. Until one counts, all other limits are
// enforced, and so is the disk limit on a process found above it twice: system calls in progress may write
// for long. measureStopped returns the bytes that remain to the process with the least left. ok is false if
// the job ends first.
func (g *guard) measureStopped() (left int64, ok bool) {
	var failed map[*meter]error
	left = math.MaxInt64
	for round, stopped, measuredAll := 0, false, false; ; round++ {
		begun, stoppedBefore := time.Now(), stopped
		stopped = g.round()
		switch {
		case measuredAll && stoppedBefore && stopped:
			return g.conclude(failed), true
		case measuredAll:
			left = g.enforceUncertain()
		}
		took := time.Since(begun)
		g.measureDue(false)
		if measuredAll = (stopped || round >= soonRounds) && !time.Now().Before(g.urgent); measuredAll {
			failed = g.measureAll(true)
		}
		if !(measuredAll && stopped) && !g.pauseAfter(round, took, left) {
			return 0, false
		}
	}
}

// conclude handles a measurement during which all processes were stopped. It ends the processes that could
// not be measured or exceed the disk limit. It returns the bytes that remain to the process with the least
// left.
func (g *guard) conclude(failed map[*meter]error) (left int64) {
	for m, err := range failed {
		g.endUnmeasurable(m, err)
	}
	return g.enforce(measured)
}

// enforceUncertain ends a process that exceeded its disk limit twice in this halt, although some processes
// ran during the measurements. One such measurement is no proof: a pending call that moves a file can make
// it count twice, but only once. Nothing is certain about a process that was resumed meanwhile.
// enforceUncertain returns the bytes that seem to remain.
func (g *guard) enforceUncertain() (left int64) {
	left = g.enforce(func(m *meter) int64 {
		if m.resumed {
			return 0
		}
		return min(m.before, m.usage.Disk)
	})
	for _, m := range g.meters {
		if !m.resumed {
			m.before = m.usage.Disk
		}
	}
	return left
}

// endUnmeasurable ends a process that cannot be measured. Folders nested too deeply count as exceeding the
// disk limit.
func (g *guard) endUnmeasurable(m *meter, err error) {
	m.over = true
	g.job.do(func() {
		if errors.Is(err, walk.ErrDeep) {
			m.process.exceed(limits.Excess{Kind: limits.Disk, Limit: g.leastDisk(), How: walk.ErrDeep.Error()})
			return
		}
		m.process.end(err.Error())
	})
}

// round checks all processes, and stops them again. It reports whether all were stopped since the last
// round. It ends a sandboxed process that keeps running. Outside a sandbox this cannot be known for
// certain, so such a process is measured as it is.
func (g *guard) round() (allStopped bool) {
	allStopped = true
	snapshots := g.snapshots()
	for m, r := range stopAll(snapshots) {
		if r.err != nil { // it has ended
			continue
		}
		isolated := m.live.program.InPIDNamespace()
		halted, resumed := m.stop.Observe(snapshots[m], r.lastPID)
		halted, m.resumed = halted && (len(snapshots[m]) > 0 || !isolated), resumed // otherwise it could not be inspected
		if !halted && m.stop.KeepsRunning() {
			if halted = !isolated; !halted {
				g.endUnmeasurable(m, errNotStopped)
				continue
			}
		}
		allStopped = allStopped && halted
	}
	return allStopped
}

// soonRounds is the number of rounds that follow each other without a growing pause. They detect processes
// that keep being resumed.
const soonRounds = 6

// pauseAfter pauses after a round. The pause grows with the number of rounds and the time that the round
// took, but ends before a limit can be exceeded. left is the number of bytes that seem to remain on disk.
// pauseAfter reports whether the job continues.
func (g *guard) pauseAfter(round int, took time.Duration, left int64) bool {
	const most = time.Second
	pause := time.Millisecond
	if late := round - soonRounds; late >= 0 {
		pause = min(time.Millisecond<<min(late, 10), g.due(left))
		pause = min(max(pause, urgentShare*took), most)
	}
	select {
	case <-time.After(pause):
		return true
	case <-g.job.ctx.Done():
		return false
	}
}
