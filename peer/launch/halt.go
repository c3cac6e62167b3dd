package launch

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/walk"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// errRestless is of processes that somebody has go on while they are measured.
var errRestless = errors.New("it does not stand still while what it has on disk is measured")

// What a job's processes do.
const (
	moving int32 = iota
	stand        // still, for the guard
	stood        // they did, since they were asked last
)

// excused reports whether processes could not answer, as the guard had them stand still.
func (j *job) excused() bool {
	return j.halting.Load() == stand || j.halting.CompareAndSwap(stood, moving)
}

// halt stops all processes. Those behind walls are stopped at one moment, by the first process of their
// namespace; others one after the other.
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

// letGoOn has them go on, but for those that are to be killed, and those that stood before.
func (g *guard) letGoOn() {
	for _, m := range g.live() {
		proc.GoOn(m.still.Halted())
		if m.still.Late() {
			g.late = after(time.Millisecond)
		}
	}
	g.job.halting.Store(stood)
	g.wentOn = time.Now()
}

// raise has those go on who were being made as all went on, if it is time to look for them: often at first.
func (g *guard) raise() {
	if g.late.IsZero() || time.Now().Before(g.late) {
		return
	}
	begun, late := time.Now(), false
	pids := g.processes()
	for _, m := range g.live() {
		if m.still != nil && m.still.Late() { // otherwise it was added since
			proc.GoOn(m.still.Made(proc.SceneOf(pids[m])))
			late = late || m.still.Late()
		}
	}
	if g.late = (time.Time{}); late {
		next := min(time.Since(g.wentOn)/urgentShare, countEvery)
		g.late = after(max(time.Millisecond, next, idleShare*time.Since(begun)))
	}
}

// live returns those whose processes run, or stand, and are not to be killed.
func (g *guard) live() (all []*meter) {
	for _, m := range g.meters {
		if m.process.ctx.Err() == nil && !m.over {
			all = append(all, m)
		}
	}
	return all
}

// scenes returns what the processes of each do.
func (g *guard) scenes() map[*meter]proc.Scene {
	pids, all := g.processes(), make(map[*meter]proc.Scene)
	for _, m := range g.live() {
		all[m] = proc.SceneOf(pids[m])
	}
	return all
}

// freshFor is how long a scene is told from: later its numbers may be those of others, of the owner's own programs.
const freshFor = time.Second

// A reply is that of a supervisor who was to stop all.
type reply struct {
	born supervisor.Born
	err  error
}

// stopAll tells all processes to stop: all of a program at one moment where that can be, and each thread that
// does not stand.
func stopAll(scenes map[*meter]proc.Scene) map[*meter]reply {
	replies := make(map[*meter]reply)
	var mu sync.Mutex
	var telling sync.WaitGroup
	for m, s := range scenes {
		telling.Go(func() {
			var r reply
			begun := time.Now()
			if m.live.program.Walled() {
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

// measureStill measures what all have on disk while they stand, and ends who has too much. What is measured
// counts if nobody has moved meanwhile. Until then all other limits are watched, and who has too much twice is
// ended: calls that are under way may write for long. It returns how many bytes are left for that one that has
// least left; ok is false if the job is over before.
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

// conclude ends who could not be measured and who has too much on disk, now that all have stood. It returns how
// many bytes are left for that one that has least left.
func (g *guard) conclude(failed map[*meter]error) (left int64) {
	for m, err := range failed {
		g.endUnmeasurable(m, err)
	}
	return g.enforce(measured)
}

// enforceUnsure ends who has too much on disk although not all have stood while that was measured, if it was found
// twice in this halt. Who is only late with a call can make a file that he moves seem two, and does so once. Of one
// who was woken meanwhile nothing is certain. It returns how many bytes seem to be left.
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

// endUnmeasurable ends a process that cannot be measured. Folders in folders without end are too much on disk.
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

// round looks at all processes, and tells them again to stop. It reports whether all have stood since the
// last round. Who goes on all the same is ended; without walls, where nobody can be sure, his files are
// measured as they are.
func (g *guard) round() (still bool) {
	still = true
	scenes := g.scenes()
	for m, r := range stopAll(scenes) {
		if r.err != nil { // it has ended
			continue
		}
		walled := m.live.program.Walled()
		stands, roused := m.still.See(scenes[m], r.born)
		stands, m.roused = stands && (len(scenes[m]) > 0 || !walled), roused // or nobody could look
		if !stands && m.still.Restless() {
			if stands = !walled; !stands {
				g.endUnmeasurable(m, errRestless)
				continue
			}
		}
		still = still && stands
	}
	return still
}

// soonRounds come one after the other as fast as can be: they find who is woken.
const soonRounds = 6

// pauseAfter lets some time pass after a round, the more the later it is and the longer that took, unless a limit
// may be exceeded meanwhile. left are the bytes that seem to be left on disk. It reports whether the job goes on.
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
