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
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A process is one of the job's processes on this peer. The job's goroutine owns it.
type process struct {
	job *job
	id  view.Process

	live *instance // nil until the process runs

	key []byte // its public key; nil before it has called mpj.Init

	ctx      context.Context // ends with the process
	cancel   context.CancelFunc
	outgoing chan queuedMessage
	early    []queuedMessage           // messages for a process that has not sent Hello
	unread   atomic.Pointer[view.View] // view that the Update in outgoing will carry; nil: no Update is queued

	greeted, initialized, finalized, aborted bool // messages that it has sent
	healed, unkept, lapsed                   bool // further messages that it has sent
	upToDate                                 protection.UpToDate
	stalls                                   int  // number of handled reports that its rank waits or that it is up to date
	diverged                                 int  // number of reports that replicas differ
	aheads                                   int  // number of reports that it is ahead of its master
	stopped                                  bool // its supervisor reports it stopped, at a time when this peer sends it no Ping

	late           *lateness      // processor time since it became late with an answer; nil: it answers
	supervisorLate *proc.CPUStats // processor time of its supervisor since that became late; nil: it answers
	starved        time.Time      // time since which the owner's work leaves it no processor; zero: it gets some

	sums   []protection.Sum // checksums of all that it has sent, by its own account
	summed bool             // it has sent these checksums

	accounted bool // the submitter has received its account

	flushing     *flush // its pending flush request; nil: none
	flushes      atomic.Uint64
	out          [streams]output
	leads        bool // it is its rank's output leader (view.Speaker) in the current view
	failedInView bool // it has failed in the view; this peer reports nothing more about it
	killed       bool
	exit         *supervisor.Exit // nil while it runs
	reason       string           // why this peer ended it, or empty
	upload       pacer            // fixed
	excess       limits.Kind      // limit for which this peer ended it, or empty
	asked        bool             // the submitter has requested its output files
	leaving      bool             // the submitter has been told that it will leave

	joining bool            // it joins its rank late; fixed
	added   bool            // it was added while the job ran here; fixed
	slot    reservation.Key // its own slot, if it was added; fixed
	begun   bool            // it has left mpj.Init, or may leave it
}

func newProcess(j *job, id view.Process) *process {
	p := &process{job: j, id: id, upload: newPacer(j.grant.Slot.Upload), outgoing: make(chan queuedMessage, maxQueuedMessages)}
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
	p.job.supervisors.Watch(p.id)
	if p.failedInView || p.reason != "" {
		p.kill()
	}
	p.job.running.Add(3 + streams)
	heard := make(chan struct{})
	go p.listen(heard) // ends with the control socket
	go p.deliver()     // ends with ctx
	go p.await(heard)  // ends with the process
	for s := range streams {
		go p.drain(s) // ends with the pipe
	}
}

// kill kills the process and its descendants without waiting for their exit. When it kills the last process
// of the job, it also raises the priority of the job's control group.
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
	p.job.raisePriority()
}

// close kills the process and returns when nothing of it is left.
func (p *process) close() {
	if p.live != nil {
		p.live.close()
	}
	for _, l := range p.early {
		l.drop()
	}
}

// end kills the process and records the reason for the submitter.
func (p *process) end(reason string) {
	if p.reason == "" && p.exit == nil {
		p.reason = reason
		p.kill()
	}
}

// socketTimeout bounds how long the control socket of a process may stay open after the process has ended. It
// only stays open if a descendant holds it, and that descendant is being killed.
const socketTimeout = time.Second

// await waits for the process to end, and reports the end after the process's last messages (F2).
func (p *process) await(heard <-chan struct{}) {
	defer p.job.running.Done()
	e := p.live.program.Wait()
	select {
	case <-heard:
	case <-time.After(socketTimeout):
	}
	x, exceeded := p.endedByLimit(e)
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
		j.supervisors.Forget(p.id)
		j.board.Ended(p.id)
	}
	for _, l := range p.early {
		l.drop()
	}
	p.early = nil
	if p.failedInView {
		return
	}
	j.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).
		Int("code", e.Code).Str("signal", e.Signal).Str("reason", p.reason).Msg("process ended")
	j.send(exited(p, e))
	for s := range p.out {
		p.settle(s)
	}
}

// An aliveCheck combines the fault detector's CheckAlive with the clock that it uses and the number of the
// last question.
type aliveCheck struct {
	*faultdetect.CheckAlive
	since time.Time
	count uint64
}

func newAliveCheck(period time.Duration) aliveCheck {
	return aliveCheck{CheckAlive: faultdetect.NewCheckAlive(period, faultdetect.DefaultHang), since: time.Now()}
}

const (
	// alivePeriod is the interval at which programs are asked whether they are alive.
	alivePeriod = 500 * time.Millisecond
	// minProgramHang leaves enough time to detect that a silent program lacks a processor.
	minProgramHang = 2 * time.Second
)

// programHang returns how long a program may leave its peer without an answer, in a job that tolerates
// silence of its peers for hang. A job without replicas tolerates long silence of peers, since a broken
// link recovers. A hung program does not, so programs get DefaultHang at most.
func programHang(hang time.Duration, replicas int) time.Duration {
	hang = max(hang+alivePeriod, minProgramHang) // the last answer may be one period old
	if replicas == 1 {
		return min(hang, faultdetect.DefaultHang)
	}
	return hang
}

// setToleratedHang sets how long the job tolerates silence of its peers.
func (j *job) setToleratedHang(hang time.Duration) {
	j.hang = hang
	j.alive.Tolerate(programHang(hang, j.spec.R))
	j.supervisors.Tolerate(supervisorHang(hang, j.spec.R))
}

// supervisorHang returns how long a supervisor may leave its peer without an answer, in a job that
// tolerates silence of its peers for hang.
func supervisorHang(hang time.Duration, replicas int) time.Duration {
	return max(programHang(hang, replicas), faultdetect.DefaultHang)
}

// checkAlive asks the programs whether they are alive. It ends those that have not answered for too long,
// because they were stopped or do not yield. Time in which a program waited for a processor does not count.
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
		ask = nil // a stopped process would find all these questions when it resumes
	}
	j.alive.count++
	for _, id := range ask {
		j.local[id].send(proclink.Message{Type: proclink.Ping, Count: j.alive.count}, nil)
	}
	for _, id := range hung {
		p := j.local[id]
		p.end(fmt.Sprintf("has not answered its peer for %v%v", j.alive.Hang(), p.late))
	}
}

// excuseAll measures how much processor time this peer gets while a process is late with an answer. The
// answer may have arrived without this peer having had time to read it.
func (j *job) excuseAll() {
	if len(j.alive.Late())+len(j.supervisors.Late()) == 0 {
		j.own = nil
		return
	}
	j.measurePeer(proc.CPUStatsOf([]int{os.Getpid()}, time.Now()))
}

// measurePeer updates the processor time of this peer, and excuses all processes if this peer starved.
func (j *job) measurePeer(now proc.CPUStats) {
	if j.own != nil && now.Starved(*j.own) {
		for _, id := range j.order {
			j.alive.Excuse(id, now.At.Sub(j.own.At))
			j.supervisors.Excuse(id, now.At.Sub(j.own.At))
		}
	}
	j.own = &now
}

// excuse measures how much processor time the late programs get.
func (j *job) excuse(late []view.Process) {
	instances := make([]*instance, len(late))
	for n, id := range late {
		instances[n] = j.local[id].live
	}
	pids := processesOf(new(supervisor.Census), instances)
	for _, id := range j.order {
		p := j.local[id]
		if !slices.Contains(late, id) {
			p.late = nil // its answer shows whether it continues: it may be stopped for the guard
			continue
		}
		p.measureCPU(proc.CPUStatsOf(pids[p.live], time.Now()))
	}
}

// excuseSupervisors measures how much processor time the late supervisors get.
func (j *job) excuseSupervisors(late []view.Process) {
	for _, id := range j.order {
		p := j.local[id]
		if !slices.Contains(late, id) {
			p.supervisorLate = nil
			continue
		}
		p.measureSupervisor(proc.CPUStatsOf([]int{p.live.program.Supervisor()}, time.Now()))
	}
}

// measureSupervisor updates the processor time of a late supervisor. If the program has stopped its
// supervisor, the supervisor does not wait for a processor, and gets no excuse.
func (p *process) measureSupervisor(now proc.CPUStats) {
	if p.supervisorLate != nil {
		p.job.supervisors.Excuse(p.id, now.WaitSince(*p.supervisorLate))
	}
	p.supervisorLate = &now
}

// A lateness records the processor time of a late process when it was first found late, and at the latest
// measurement.
type lateness struct{ first, last proc.CPUStats }

// String describes the processor time, which distinguishes a busy loop from a process that waits for
// something. It returns "" if l is nil or if the kernel does not report processor time.
func (l *lateness) String() string {
	if l == nil || l.last.Ran == 0 {
		return ""
	}
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf(" (of the last %v it ran for %v and waited for a processor for %v)", round(l.last.At.Sub(l.first.At)),
		round(l.last.Ran-l.first.Ran), round(l.last.WaitSince(l.first)))
}

// measureCPU updates the processor time of a late process, and excuses the time that it waited for a
// processor.
func (p *process) measureCPU(now proc.CPUStats) {
	if p.late == nil {
		p.late = &lateness{first: now, last: now}
		return
	}
	before := p.late.last
	p.late.last = now
	p.job.alive.Excuse(p.id, now.WaitSince(before))
	if now.Starved(before) {
		p.logStarved(before.At)
	} else {
		p.logScheduled()
	}
}

// logStarved logs once that the owner's own work leaves the process no processor.
func (p *process) logStarved(since time.Time) {
	if p.starved.IsZero() {
		p.starved = since
		p.job.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Msg("a process gets no processor time: the owner's work uses all processors")
	}
}

// logScheduled logs that the process gets processor time again.
func (p *process) logScheduled() {
	if !p.starved.IsZero() {
		p.job.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Dur("waited", time.Since(p.starved)).Msg("a process gets processor time again")
		p.starved = time.Time{}
	}
}

// checkSupervisors asks the supervisors whether they are alive and whether their program is stopped. If a
// program has stopped its supervisor, this peer would never learn how the program ended. A program that was
// stopped before it joined the job gets no questions from checkAlive.
func (j *job) checkSupervisors() {
	j.excuseSupervisors(j.supervisors.Late())
	ask, hung := j.supervisors.Tick(time.Since(j.supervisors.since))
	for _, id := range ask {
		j.local[id].live.program.Ask()
	}
	for _, id := range hung {
		p := j.local[id]
		if p.stopped {
			p.end(fmt.Sprintf("has been stopped for %v", j.supervisors.Hang()))
			continue
		}
		// Kill the supervisor first: end resumes it, and it could still report a different end.
		p.live.program.KillSupervisor()
		p.end(fmt.Sprintf("its supervisor has not answered for %v", j.supervisors.Hang()))
	}
}

// handleAnswer handles a supervisor's answer. Between Hello and Finalized, checkAlive checks whether the
// program is stopped or hangs, so handleAnswer ignores that it is stopped. A program that the guard has
// stopped counts as running.
func (j *job) handleAnswer(id view.Process, stopped bool) {
	p := j.local[id]
	if p == nil { // it was dropped
		return
	}
	p.stopped = stopped && j.halting.Load() == notHalted && (!p.greeted || p.finalized)
	if !p.stopped {
		j.supervisors.Answered(id)
	}
}
