package launch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A process is what the job's owner knows of one of its processes here.
type process struct {
	job *job
	id  view.Process

	live *instance // nil until it runs

	cell   int    // of its bell on the job's board
	shares bool   // it has the board
	key    []byte // public, once it has called mpj.Init

	ctx    context.Context // ends with the process
	cancel context.CancelFunc
	toLine chan letter
	early  []letter                  // for a process that has not said hello
	unread atomic.Pointer[view.View] // what the Update in toLine is to say; nil: there is none

	greeted, initialized, finalized, aborted bool // what it has said
	healed, unkept, lapsed                   bool // likewise
	upToDate                                 protection.UpToDate
	stalls                                   int  // reports handled, that its rank waits or that it lacks nothing any more
	diverged                                 int  // how often it has said that replicas differ
	aheads                                   int  // times it has said that it is ahead of its master
	stopped                                  bool // while nobody asks it itself, says its supervisor

	late    *lateness   // nil: it answers
	unheard *proc.Turns // likewise its supervisor
	starved time.Time   // since when the owner's own work leaves it none; zero: it has some

	sums   []protection.Sum // what it has sent in all, says it
	summed bool             // it has said so

	accounted bool // the submitter has been told

	flushing *flush // nil: it has asked nothing
	flushes  atomic.Uint64
	out      [streams]output
	speaks   bool // for its rank, in the current view
	expelled bool // failed in the view: nothing is said of it any more
	killed   bool
	exit     *supervisor.Exit // not nil: it has ended
	reason   string           // why this peer ended it, or empty
	upload   pacer            // fixed
	excess   limits.Kind      // that it has ended it for, or empty
	asked    bool             // its files have been collected
	leaving  bool             // the submitter has been told that it is to go

	joining bool            // it joins its rank late; fixed
	added   bool            // to a part of the job that was running already; fixed
	slot    reservation.Key // slot of a process that was added; fixed
	begun   bool            // it has left mpj.Init, or may leave it
}

func newProcess(j *job, id view.Process, cell int) *process {
	p := &process{job: j, id: id, upload: newPacer(j.grant.Slot.Upload), cell: cell, toLine: make(chan letter, maxLetters)}
	p.ctx, p.cancel = context.WithCancel(j.ctx)
	for s := range p.out {
		p.out[s].room = make(chan struct{}, 1)
	}
	if j.spec.R > 1 {
		p.out[stdout].sum = sha256.New()
	}
	return p
}

// run begins to watch a process that has been started.
func (p *process) run(i *instance) {
	p.live = i
	p.job.watching.Watch(p.id)
	if p.expelled || p.reason != "" {
		p.kill()
	}
	p.job.running.Add(3 + streams)
	heard := make(chan struct{})
	go p.listen(heard) // ends with the line
	go p.deliver()     // ends with ctx
	go p.await(heard)  // ends with the process
	for s := range streams {
		go p.drain(s) // ends with the pipe
	}
}

// kill ends the process and its descendants, without waiting for that. The last of the job's hurries:
// others would compute meanwhile.
func (p *process) kill() {
	if p.live == nil {
		return
	}
	p.live.note() // its supervisor removes the group
	p.live.program.Kill()
	p.killed = true
	for _, other := range p.job.local {
		if !other.killed && other.exit == nil {
			return
		}
	}
	p.job.hurry()
}

// close ends the process and returns when nothing of it is left.
func (p *process) close() {
	if p.live != nil {
		p.live.close()
	}
	for _, l := range p.early {
		l.drop()
	}
}

// end kills the process for a reason that the submitter is told.
func (p *process) end(reason string) {
	if p.reason == "" && p.exit == nil {
		p.reason = reason
		p.kill()
	}
}

// lineTimeout is how long after the end of a process its line may take to end.
// It is longer only if a descendant holds it, and that is being killed.
const lineTimeout = time.Second

// await reports the end of the process, after its last words (F2).
func (p *process) await(heard <-chan struct{}) {
	defer p.job.running.Done()
	e := p.live.program.Wait()
	select {
	case <-heard:
	case <-time.After(lineTimeout):
	}
	x, exceeded := p.autopsy(e)
	p.job.do(func() {
		if exceeded {
			p.exceed(x)
		}
		p.job.exited(p, e)
	})
}

func (j *job) exited(p *process, e supervisor.Exit) {
	p.exit, p.starved = &e, time.Time{}
	p.cancel()
	if j.local[p.id] == p { // otherwise it was dropped, and there may be another one
		j.alive.Forget(p.id)
		j.watching.Forget(p.id)
	}
	for _, l := range p.early {
		l.drop()
	}
	p.early = nil
	if p.expelled {
		return
	}
	j.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).
		Int("code", e.Code).Str("signal", e.Signal).Str("reason", p.reason).Msg("process ended")
	j.say(exited(p, e))
	for s := range p.out {
		p.settle(s)
	}
}

// An aliveCheck is the fault detector's CheckAlive with the clock that it goes
// by and the number of the next question.
type aliveCheck struct {
	*faultdetect.CheckAlive
	since time.Time
	count uint64
}

func newAliveCheck(period time.Duration) aliveCheck {
	return aliveCheck{CheckAlive: faultdetect.NewCheckAlive(period, faultdetect.DefaultHang), since: time.Now()}
}

const (
	// alivePeriod is how often programs are asked whether they are alive.
	alivePeriod = 500 * time.Millisecond
	// minProgramHang leaves time to see whether a program that does not answer lacks a processor.
	minProgramHang = 2 * time.Second
)

// programHang returns how long a program may leave its peer without an answer, in a job that tolerates
// silence of its peers for hang. A job without replicas tolerates that of peers for long, since a cut link
// heals; a hung program does not.
func programHang(hang time.Duration, replicas int) time.Duration {
	hang = max(hang+alivePeriod, minProgramHang) // the last answer may be one period old
	if replicas == 1 {
		return min(hang, faultdetect.DefaultHang)
	}
	return hang
}

// tolerate sets how long the job tolerates silence of its peers.
func (j *job) tolerate(hang time.Duration) {
	j.hang = hang
	j.alive.Tolerate(programHang(hang, j.spec.R))
	j.watching.Tolerate(supervisorHang(hang, j.spec.R))
}

// supervisorHang returns how long a supervisor may fail to answer its peer, in a job that tolerates silence of
// its peers for hang.
func supervisorHang(hang time.Duration, replicas int) time.Duration {
	return max(programHang(hang, replicas), faultdetect.DefaultHang)
}

// checkAlive asks the programs whether they are there, and ends those that have
// not answered for too long: one that was stopped, or never yields. Time in which a program waited for a
// processor does not count.
func (j *job) checkAlive() {
	excused := j.excused()
	if excused {
		for _, id := range j.order {
			j.alive.Answered(id)
		}
	}
	j.excuse(j.alive.Late())
	ask, hung := j.alive.Tick(time.Since(j.alive.since))
	if excused {
		ask = nil // it would find many questions when it goes on
	}
	j.alive.count++
	for _, id := range ask {
		j.local[id].tell(proclink.Message{Type: proclink.Ping, Count: j.alive.count}, nil)
	}
	for _, id := range hung {
		p := j.local[id]
		p.end(fmt.Sprintf("has not answered its peer for %v%v", j.alive.Hang(), p.late))
	}
}

// excuseAll looks how much of the processors this peer gets itself, while somebody is late with an answer: it may be
// this peer that has not read it.
func (j *job) excuseAll() {
	if len(j.alive.Late())+len(j.watching.Late()) == 0 {
		j.own = nil
		return
	}
	j.weighPeer(proc.TurnsOf([]int{os.Getpid()}, time.Now()))
}

// weighPeer takes what this peer has had of the processors until now.
func (j *job) weighPeer(now proc.Turns) {
	if j.own != nil && now.Starved(*j.own) {
		for _, id := range j.order {
			j.alive.Excuse(id, now.At.Sub(j.own.At))
			j.watching.Excuse(id, now.At.Sub(j.own.At))
		}
	}
	j.own = &now
}

// excuse looks how much of the processors those get that are late with an answer.
func (j *job) excuse(late []view.Process) {
	instances := make([]*instance, len(late))
	for n, id := range late {
		instances[n] = j.local[id].live
	}
	pids := processesOf(new(supervisor.Census), instances)
	for _, id := range j.order {
		p := j.local[id]
		if !slices.Contains(late, id) {
			p.late = nil // whether it goes on its answer says: it may be that it stands still for the guard
			continue
		}
		p.weigh(proc.TurnsOf(pids[p.live], time.Now()))
	}
}

// excuseSupervisors does the same with those that watch over programs.
func (j *job) excuseSupervisors(late []view.Process) {
	for _, id := range j.order {
		p := j.local[id]
		if !slices.Contains(late, id) {
			p.unheard = nil
			continue
		}
		p.weighSupervisor(proc.TurnsOf([]int{p.live.program.Supervisor()}, time.Now()))
	}
}

// weighSupervisor takes what the supervisor, which is late with an answer, has had until now. One that a program
// has stopped wants no processor.
func (p *process) weighSupervisor(now proc.Turns) {
	if p.unheard != nil {
		p.job.watching.Excuse(p.id, now.Lacked(*p.unheard))
	}
	p.unheard = &now
}

// A lateness is what a process that is late with an answer had of the processors when that was first found, and when
// it was last looked at.
type lateness struct{ first, last proc.Turns }

// String tells one that hangs in a loop from one that waits for something; it is empty of nil, and where the kernel
// does not say.
func (l *lateness) String() string {
	if l == nil || l.last.Ran == 0 {
		return ""
	}
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf(" (of the last %v it ran for %v and waited for a processor for %v)", round(l.last.At.Sub(l.first.At)),
		round(l.last.Ran-l.first.Ran), round(l.last.Lacked(l.first)))
}

// weigh takes what the process, which is late with an answer, has had of the processors until now.
func (p *process) weigh(now proc.Turns) {
	if p.late == nil {
		p.late = &lateness{first: now, last: now}
		return
	}
	before := p.late.last
	p.late.last = now
	p.job.alive.Excuse(p.id, now.Lacked(before))
	if now.Starved(before) {
		p.starves(before.At)
	} else {
		p.fed()
	}
}

// starves says once that the owner's own work leaves a process no processor.
func (p *process) starves(since time.Time) {
	if p.starved.IsZero() {
		p.starved = since
		p.job.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Msg("a process waits: the owner's own work needs all processors")
	}
}

// fed says that it has one again.
func (p *process) fed() {
	if !p.starved.IsZero() {
		p.job.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Dur("waited", time.Since(p.starved)).Msg("a process goes on")
		p.starved = time.Time{}
	}
}

// checkSupervisors does the same with the supervisors, which must say that they
// are there and that their program is not stopped. From one that a program has
// stopped, nobody would ever hear how the program ended; and a program that was
// stopped before it joined the job would not be asked anything by checkAlive.
func (j *job) checkSupervisors() {
	j.excuseSupervisors(j.watching.Late())
	ask, hung := j.watching.Tick(time.Since(j.watching.since))
	for _, id := range ask {
		j.local[id].live.program.Ask()
	}
	for _, id := range hung {
		p := j.local[id]
		if p.stopped {
			p.end(fmt.Sprintf("has been stopped for %v", j.watching.Hang()))
			continue
		}
		// First of all: end wakes it, and it could still report another end.
		p.live.program.KillSupervisor()
		p.end(fmt.Sprintf("its supervisor has not answered for %v", j.watching.Hang()))
	}
}

// attended takes a supervisor's answer. A program that has said hello and has not
// finished is asked by checkAlive, whether it is stopped or hangs in another way. One that stands for the guard
// is as if it ran.
func (j *job) attended(id view.Process, stopped bool) {
	p := j.local[id]
	if p == nil { // it was dropped
		return
	}
	p.stopped = stopped && j.halting.Load() == moving && (!p.greeted || p.finalized)
	if !p.stopped {
		j.watching.Answered(id)
	}
}
