package replication

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

var (
	schedules = flag.Int("schedules", defaultSchedules, "random schedules to run")
	seed      = flag.Uint64("seed", 0, "seed of a single schedule to run, with its trace, or of the random paths of TestEveryInterleaving; 0 runs many")
)

// TestRandomSchedules checks R1 to R5 in whole jobs: random programs, interleavings, crashes, false
// failures, late views and broken channels.
func TestRandomSchedules(t *testing.T) {
	if *seed != 0 {
		if err := runSchedule(*seed, t.Logf); err != nil {
			t.Fatal(err)
		}
		return
	}
	base := rand.Uint64() | 1
	t.Logf("first seed %d", base)
	var next atomic.Int64
	total := int64(skip.Fewer(*schedules, 1000))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1); i <= total && !t.Failed(); i = next.Add(1) {
				if err := runSchedule(base+uint64(i), nil); err != nil {
					t.Errorf("%v\nreplay: go test -run TestRandomSchedules -v -seed %d", err, base+uint64(i))
				}
			}
		})
	}
	workers.Wait()
}

// runSchedule runs one job until nothing is left to do, and checks the end.
func runSchedule(seed uint64, trace func(string, ...any)) error {
	j := newJob(rand.New(rand.NewPCG(seed, 1)))
	j.trace = trace
	most := 2000 * len(j.procs)
	for i := range most {
		if err := j.event(); err != nil {
			return err
		}
		if i%8 != 0 {
			continue // checking takes longer than an event
		}
		if i%32 == 0 {
			if err := j.judge(j.procs[j.rng.IntN(len(j.procs))]); err != nil {
				return err
			}
		}
		if done, err := j.quiet(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("R2: the job has not finished after %d events: %s", most, j.state())
}

// event carries out one random event.
func (j *job) event() error {
	p := j.procs[j.rng.IntN(len(j.procs))]
	switch x := j.rng.IntN(100); {
	case x < j.haste:
		return j.deliverSome()
	case x < 80:
		return j.stepSome()
	case p.gone:
		return nil
	case p.notStarted():
		return j.wait(p)
	case x < 87:
		return j.carryOut(p, p.Tick())
	case x < 95:
		return j.learn(p)
	case x < 97:
		return j.reopen(p)
	case j.rng.IntN(j.calm) == 0:
		j.injectFault(p)
	}
	return nil
}

// wait lets p, which has not started, start or crash.
func (j *job) wait(p *process) error {
	switch {
	case !j.current().Live(p.id):
	case j.crashes > 0 && j.rng.IntN(20) == 0 && j.spare(p):
		j.crash(p)
	default:
		j.begin(p)
	}
	return nil
}

// deliverSome delivers a few frames of one queue; slow queues are chosen rarely.
func (j *job) deliverSome() error {
	for tries := 0; tries < 3 && len(j.busy) > 0; tries++ {
		k := j.rng.IntN(len(j.busy))
		i := j.busy[k]
		if waiting := len(j.queues[i]); waiting > 0 {
			if j.rng.IntN(j.slow[i]) != 0 {
				continue
			}
			for range 1 + j.rng.IntN(waiting) {
				if err := j.deliver(i); err != nil {
					return err
				}
			}
			return nil
		}
		j.listed[i] = false
		j.busy[k] = j.busy[len(j.busy)-1]
		j.busy = j.busy[:len(j.busy)-1]
	}
	return nil
}

// stepSome lets one program make a few calls; lazy programs are chosen rarely. If none can proceed, it
// delivers a frame.
func (j *job) stepSome() error {
	for range 3 {
		i := j.rng.IntN(len(j.procs))
		p := j.procs[i]
		if p.gone || p.done() || j.rng.IntN(j.lazy[i]) != 0 {
			continue
		}
		start, most := p.pc, p.pc+1+j.rng.IntN(8)
		for at := -1; p.pc > at && p.pc < most; {
			at = p.pc
			if err := p.step(); err != nil {
				return err
			}
		}
		if p.pc > start {
			return nil
		}
	}
	return j.deliverSome()
}

// learn makes a view that records crashed processes, or passes p a newer view, possibly skipping views.
func (j *job) learn(p *process) error {
	if len(j.silent) > 0 && j.rng.IntN(2) == 0 {
		j.changeState(j.silent[0], view.Failed)
		j.silent = j.silent[1:]
	}
	if j.joins > 0 && j.rng.IntN(2*j.calm) == 0 {
		j.addReplica()
	}
	if j.promotions > 0 && j.rng.IntN(10) == 0 {
		j.promote(p)
	}
	if behind := len(j.views) - 1 - j.to[j.index(p.id)]; behind > 0 {
		return j.inform(p, j.to[j.index(p.id)]+1+j.rng.IntN(behind))
	}
	return nil
}

// injectFault crashes p, fails it in the view while it runs, lets it finish, breaks one of its channels,
// or divides the job.
func (j *job) injectFault(p *process) {
	live := j.current().Live(p.id)
	switch x := j.rng.IntN(10); {
	case x < 4 && live && j.crashes > 0 && j.spare(p):
		j.crash(p)
	case x < 5 && live && j.crashes > 0 && j.spare(p):
		j.crashes--
		j.changeState(p, view.Failed)
	case x < 8 && live && p.done() && p.Retained() == 0:
		j.changeState(p, view.Finished)
		p.gone = true
	case j.resets > 0 && x == 8:
		j.partition()
	case j.resets > 0 && len(j.busy) > 0:
		i := j.busy[j.rng.IntN(len(j.busy))]
		if from := j.procs[i/len(j.procs)]; !from.gone {
			j.breakChannel(from, j.procs[i%len(j.procs)].id)
		}
	}
}

// quiet reports whether the job has ended, and checks the final state. Every live process has run its whole
// program (R2) and keeps nothing (R3). All replicas of a rank have seen the same values (R1). This includes
// replicas that crashed or that the view failed, up to that point, because their output has been printed.
func (j *job) quiet() (bool, error) {
	for i, p := range j.procs {
		if p.notStarted() && !p.gone && j.current().Live(p.id) {
			return false, nil
		}
		if p.gone || !p.takesPart() {
			continue
		}
		if j.to[i] != len(j.views)-1 || len(p.lost) > 0 {
			return false, nil
		}
		if !p.done() || p.Retained() != 0 || p.Joining() || p.v.IsMaster(p.id) && !p.Decider() {
			return false, nil
		}
	}
	for _, p := range j.procs {
		for _, q := range j.procs[p.id.Rank*j.most:][:j.most] {
			if n := min(len(p.log), len(q.log)); !slices.Equal(p.log[:n], q.log[:n]) {
				return true, fmt.Errorf("R1: %v and %v saw different values", p.id, q.id)
			}
		}
	}
	return true, nil
}

// state describes a job that does not end.
func (j *job) state() string {
	s := fmt.Sprintf("n=%d r=%d epoch %d", j.n, j.r, j.current().Epoch)
	for i, p := range j.procs {
		if p.notStarted() {
			s += fmt.Sprintf("\n%v: has not started, %v", p.id, j.current().State(p.id))
			continue
		}
		s += fmt.Sprintf("\n%v: gone %v, %v, epoch %d, at %d of %d, retains %d, decider %v",
			p.id, p.gone, j.current().State(p.id), j.to[i]+1, p.pc, len(p.script), p.Retained(), p.Decider())
	}
	return s
}
