package launch

import (
	"errors"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// errRestless is of processes that somebody has go on while they are measured.
var errRestless = errors.New("it does not stand still while what it has on disk is measured")

// What a job's processes do.
const (
	free  int32 = iota
	stand       // still, for the guard
	stood       // they did, since they were asked last
)

// excused reports whether processes could not answer, as the guard had them stand still.
func (j *job) excused() bool {
	return j.halting.Load() == stand || j.halting.CompareAndSwap(stood, free)
}

// halt stops all processes. Those behind walls are stopped at one moment, by the first process of their
// namespace; others one after the other.
func (g *guard) halt() {
	g.job.halting.Store(stand)
	scenes := g.scenes()
	for m, r := range tell(scenes) {
		m.still = newStillness(scenes[m], r.born)
	}
}

// resume has them go on, but for those that are to be killed, and those that stood before.
func (g *guard) resume() {
	for _, m := range g.live() {
		for pid := range m.still.scene {
			if !m.still.asleep(pid) {
				goOn(pid)
			}
		}
	}
	g.job.halting.Store(stood)
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
func (g *guard) scenes() map[*meter]scene {
	pids, all := g.processes(), make(map[*meter]scene)
	for _, m := range g.live() {
		all[m] = sceneOf(pids[m])
	}
	return all
}

// A reply is that of a supervisor who was to stop all.
type reply struct {
	born supervisor.Born
	err  error
}

// tell tells all processes to stop: all of a program at one moment where that can be, and each thread that
// does not stand. Of threads that are told together one takes it for all, and that one may be waiting.
func tell(scenes map[*meter]scene) map[*meter]reply {
	replies := make(map[*meter]reply)
	var mu sync.Mutex
	var telling sync.WaitGroup
	for m, s := range scenes {
		telling.Go(func() {
			var r reply
			if m.live.program.Walled() {
				r.born, r.err = m.live.program.Halt()
			}
			for pid, p := range s {
				stop(pid, p)
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
// counts if nobody has moved meanwhile. It returns how many bytes are left for that one that has least
// left; ok is false if the job is over before.
func (g *guard) measureStill() (left int64, ok bool) {
	var failed map[*meter]error
	for round, measured := 0, false; ; round++ {
		still := g.round()
		if still && measured {
			break
		}
		if measured = still && !time.Now().Before(g.urgent); measured {
			failed = g.survey(true)
		} else if !g.rest(round) {
			return 0, false
		}
	}
	for m, err := range failed {
		g.give(m, err)
	}
	return g.judge(true), true
}

// give ends a process that cannot be measured.
func (g *guard) give(m *meter, err error) {
	m.over = true
	g.job.do(func() { m.process.end(err.Error()) })
}

// round looks at all processes, and tells them again to stop. It reports whether all have stood since the
// last round. Who goes on all the same is ended; without walls, where nobody can be sure, his files are
// measured as they are.
func (g *guard) round() (still bool) {
	still = true
	scenes := g.scenes()
	for m, r := range tell(scenes) {
		if errors.Is(r.err, supervisor.ErrEnded) {
			continue
		}
		stands := m.still.see(scenes[m], r.born) && r.err == nil
		if !stands && m.still.restless() {
			if stands = !m.live.program.Walled(); !stands {
				g.give(m, errRestless)
				continue
			}
		}
		still = still && stands
	}
	return still
}

// soonRounds come one after the other as fast as can be: they find who is woken.
const soonRounds = 6

// rest lets some time pass after a round. It reports whether the job goes on.
func (g *guard) rest(round int) bool {
	select {
	case <-time.After(min(time.Millisecond<<max(0, round-soonRounds), time.Second)):
		return true
	case <-g.job.ctx.Done():
		return false
	}
}
