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

// errRestless is the error of a process that keeps being resumed during the measurement.
var errRestless = errors.New("the process could not be stopped for disk accounting")

// States of a job's processes with respect to the guard.
const (
	moving int32 = iota
	stand        // stopped, or being stopped, for the guard
	stood        // running again, after a halt since the last call of excused
)

// excused reports whether processes may have missed a question because the guard stopped them.
func (j *job) excused() bool {
	return j.halting.Load() == stand || j.halting.CompareAndSwap(stood, moving)
}

// halt stops all processes of the job. The init process of a sandbox's PID namespace stops all its
// processes at once; processes outside a sandbox are stopped one by one.
func (g *guard) halt() {
	g.job.halting.Store(stand)
	g.late = time.Time{}
	for _, m := range g.meters {
		m.before, m.roused = 0, false
	}
	scenes := g.scenes()
	for m, r := range stopAll(scenes) {
		before := scenes[m]
		if m.still != nil {
			before = m.still.Awake(before)
		}
		m.still = proc.NewStillness(before, r.born)
	}
}

// resume resumes the processes, except those that are to be killed or were stopped before the halt.
func (g *guard) resume() {
	for _, m := range g.live() {
		proc.Resume(m.still.Halted())
		if m.still.Late() {
			g.late = after(time.Millisecond)
		}
	}
	g.job.halting.Store(stood)
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
		if m.still != nil && m.still.Late() { // otherwise the process was added since the halt
			proc.Resume(m.still.Made(proc.SceneOf(pids[m])))
			late = late || m.still.Late()
		}
	}
	if g.late = (time.Time{}); late {
		next := min(time.Since(g.resumedAt)/urgentShare, countEvery)
		g.late = after(max(time.Millisecond, next, idleShare*time.Since(begun)))
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

// scenes returns the state of the threads of each meter's processes.
func (g *guard) scenes() map[*meter]proc.Scene {
	pids, all := g.processes(), make(map[*meter]proc.Scene)
	for _, m := range g.live() {
		all[m] = proc.SceneOf(pids[m])
	}
	return all
}

// freshFor is how long the IDs in a scene are used. Later, the kernel may have reused them for other
// processes, such as the owner's own.
const freshFor = time.Second

// A reply is a supervisor's reply to Halt.
type reply struct {
	born supervisor.Born
	err  error
}

// stopAll stops all processes: where possible all those of a program at once, then each thread that still
// runs.
func stopAll(scenes map[*meter]proc.Scene) map[*meter]reply {
	replies := make(map[*meter]reply)
	var mu sync.Mutex
	var telling sync.WaitGroup
	for m, s := range scenes {
		telling.Go(func() {
			var r reply
			begun := time.Now()
			if m.live.program.InPIDNamespace() {
				r.born, r.err = m.live.program.Halt()
			}
			if r.err == nil && time.Since(begun) < freshFor {
				s.Stop()
			}
			mu.Lock()
			defer mu.Unlock()
			replies[m] = r
		})
	}
	telling.Wait()
	return replies
}

// measureStill measures the disk usage of all processes while they are stopped, and ends those that exceed
// the limit. A measurement counts if no process ran during it. Until one counts, all other limits are
// enforced, and so is the disk limit on a process found above it twice: system calls in progress may write
// for long. measureStill returns the bytes that remain to the process with the least left. ok is false if
// the job ends first.
func (g *guard) measureStill() (left int64, ok bool) {
	var failed map[*meter]error
	left = math.MaxInt64
	for round, still, surveyed := 0, false, false; ; round++ {
		begun, stoodBefore := time.Now(), still
		still = g.round()
		switch {
		case surveyed && stoodBefore && still:
			return g.conclude(failed), true
		case surveyed:
			left = g.enforceUnsure()
		}
		took := time.Since(begun)
		g.watch(false)
		if surveyed = (still || round >= soonRounds) && !time.Now().Before(g.urgent); surveyed {
			failed = g.survey(true)
		}
		if !(surveyed && still) && !g.pauseAfter(round, took, left) {
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

// enforceUnsure ends a process that exceeded its disk limit twice in this halt, although some processes ran
// during the measurements. One such measurement is no proof: a pending call that moves a file can make it
// count twice, but only once. Nothing is certain about a process that was resumed meanwhile. enforceUnsure
// returns the bytes that seem to remain.
func (g *guard) enforceUnsure() (left int64) {
	left = g.enforce(func(m *meter) int64 {
		if m.roused {
			return 0
		}
		return min(m.before, m.usage.Disk)
	})
	for _, m := range g.meters {
		if !m.roused {
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
func (g *guard) round() (still bool) {
	still = true
	scenes := g.scenes()
	for m, r := range stopAll(scenes) {
		if r.err != nil { // it has ended
			continue
		}
		inside := m.live.program.InPIDNamespace()
		stands, roused := m.still.See(scenes[m], r.born)
		stands, m.roused = stands && (len(scenes[m]) > 0 || !inside), roused // otherwise it could not be inspected
		if !stands && m.still.Restless() {
			if stands = !inside; !stands {
				g.endUnmeasurable(m, errRestless)
				continue
			}
		}
		still = still && stands
	}
	return still
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
