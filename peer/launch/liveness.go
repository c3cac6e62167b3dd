package launch

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
)

// A liveness tells which programs and supervisors of a job have not answered for too long, because they were
// stopped or do not yield. Time in which they waited for a processor does not count.
type liveness struct {
	log         zerolog.Logger
	programs    aliveCheck
	supervisors aliveCheck
	own         *proc.CPUStats // processor time of this peer when a process was last late; nil: none is late
	states      map[view.Process]*aliveState
	questions   uint64 // number of times that programs were asked
}

// An aliveState holds what is known about one process.
type aliveState struct {
	late           *lateness      // processor time since its program became late with an answer; nil: it answers
	supervisorLate *proc.CPUStats // processor time of its supervisor since that became late; nil: it answers
	starvedSince   time.Time      // time since which the owner's work leaves it no processor; zero: it gets some
	stopped        bool           // its supervisor reports it stopped, at a time when this peer sends it no Ping
}

// An aliveCheck combines the fault detector's CheckAlive with the clock that it uses.
type aliveCheck struct {
	*faultdetect.CheckAlive
	since time.Time
}

func newAliveCheck(period time.Duration) aliveCheck {
	return aliveCheck{CheckAlive: faultdetect.NewCheckAlive(period, faultdetect.DefaultHang), since: time.Now()}
}

func newLiveness(log zerolog.Logger) *liveness {
	return &liveness{
		log: log, programs: newAliveCheck(alivePeriod), supervisors: newAliveCheck(tickPeriod),
		states: make(map[view.Process]*aliveState),
	}
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

// supervisorHang returns how long a supervisor may leave its peer without an answer, in a job that
// tolerates silence of its peers for hang.
func supervisorHang(hang time.Duration, replicas int) time.Duration {
	return max(programHang(hang, replicas), faultdetect.DefaultHang)
}

// tolerate sets how long the job tolerates silence of its peers.
func (l *liveness) tolerate(hang time.Duration, replicas int) {
	l.programs.Tolerate(programHang(hang, replicas))
	l.supervisors.Tolerate(supervisorHang(hang, replicas))
}

// started begins to check the supervisor of a process.
func (l *liveness) started(p view.Process) {
	l.states[p] = new(aliveState)
	l.supervisors.Watch(p)
}

// answered records an answer of a program.
func (l *liveness) answered(p view.Process) {
	l.programs.Answered(p)
	l.logScheduled(p)
}

// finalized ends the questions to a program, which may take long to exit.
func (l *liveness) finalized(p view.Process) {
	l.programs.Forget(p)
	l.logScheduled(p)
}

// ended forgets a process.
func (l *liveness) ended(p view.Process) {
	l.programs.Forget(p)
	l.supervisors.Forget(p)
	delete(l.states, p)
}

// supervisorAnswered records a supervisor's answer, and whether the program is stopped without reason.
func (l *liveness) supervisorAnswered(p view.Process, stopped bool) {
	if s := l.states[p]; s != nil {
		s.stopped = stopped
		if !stopped {
			l.supervisors.Answered(p)
		}
	}
}

// starved returns the number of processes that do not answer because they get no processor time.
func (l *liveness) starved() (n int) {
	for _, s := range l.states {
		if !s.starvedSince.IsZero() {
			n++
		}
	}
	return n
}

// checkPrograms returns the programs to ask whether they are alive, and those that have not answered for too
// long. With excused, they may have missed a question, and none is asked. pids returns the process IDs of
// programs.
func (l *liveness) checkPrograms(excused bool, pids func(late []view.Process) map[view.Process][]int) (ask, hung []view.Process) {
	l.questions++
	l.excuseAll()
	if excused {
		for p := range l.states {
			l.programs.Answered(p)
		}
	}
	l.excuse(l.programs.Late(), pids)
	ask, hung = l.programs.Tick(time.Since(l.programs.since))
	if excused {
		ask = nil // a stopped process would find all these questions when it resumes
	}
	return ask, hung
}

// hungProgram returns the reason for ending a program that has not answered for too long.
func (l *liveness) hungProgram(p view.Process) string {
	return fmt.Sprintf("has not answered its peer for %v%v", l.programs.Hang(), l.states[p].late)
}

// excuseAll measures how much processor time this peer gets while a process is late with an answer. The
// answer may have arrived without this peer having had time to read it.
func (l *liveness) excuseAll() {
	if len(l.programs.Late())+len(l.supervisors.Late()) == 0 {
		l.own = nil
		return
	}
	l.measurePeer(proc.CPUStatsOf([]int{os.Getpid()}, time.Now()))
}

// measurePeer updates the processor time of this peer, and excuses all processes if this peer starved.
func (l *liveness) measurePeer(now proc.CPUStats) {
	if l.own != nil && now.Starved(*l.own) {
		for p := range l.states {
			l.programs.Excuse(p, now.At.Sub(l.own.At))
			l.supervisors.Excuse(p, now.At.Sub(l.own.At))
		}
	}
	l.own = &now
}

// excuse measures how much processor time the late programs get.
func (l *liveness) excuse(late []view.Process, pids func([]view.Process) map[view.Process][]int) {
	of := pids(late)
	for p, s := range l.states {
		if !slices.Contains(late, p) {
			s.late = nil // its answer shows whether it continues: it may be suspended
			continue
		}
		l.measureProgram(p, proc.CPUStatsOf(of[p], time.Now()))
	}
}

// measureProgram updates the processor time of a late program, and excuses the time that it waited for a
// processor.
func (l *liveness) measureProgram(p view.Process, now proc.CPUStats) {
	s := l.states[p]
	if s.late == nil {
		s.late = &lateness{first: now, last: now}
		return
	}
	before := s.late.last
	s.late.last = now
	l.programs.Excuse(p, now.WaitSince(before))
	if now.Starved(before) {
		l.logStarved(p, before.At)
	} else {
		l.logScheduled(p)
	}
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

// logStarved logs once that the owner's own work leaves a process no processor.
func (l *liveness) logStarved(p view.Process, since time.Time) {
	if s := l.states[p]; s.starvedSince.IsZero() {
		s.starvedSince = since
		l.log.Info().Int("rank", p.Rank).Int("replica", p.Replica).Msg("a process gets no processor time: the owner's work uses all processors")
	}
}

// logScheduled logs that a process gets processor time again.
func (l *liveness) logScheduled(p view.Process) {
	if s := l.states[p]; s != nil && !s.starvedSince.IsZero() {
		l.log.Info().Int("rank", p.Rank).Int("replica", p.Replica).Dur("waited", time.Since(s.starvedSince)).Msg("a process gets processor time again")
		s.starvedSince = time.Time{}
	}
}

// checkSupervisors returns the supervisors to ask whether they are alive and whether their program is stopped,
// and those that have not answered for too long. If a program has stopped its supervisor, this peer would
// never learn how the program ended. pid returns the process ID of a supervisor.
func (l *liveness) checkSupervisors(pid func(view.Process) int) (ask, hung []view.Process) {
	late := l.supervisors.Late()
	for p, s := range l.states {
		if !slices.Contains(late, p) {
			s.supervisorLate = nil
			continue
		}
		l.measureSupervisor(p, proc.CPUStatsOf([]int{pid(p)}, time.Now()))
	}
	return l.supervisors.Tick(time.Since(l.supervisors.since))
}

// measureSupervisor updates the processor time of a late supervisor. If the program has stopped its
// supervisor, the supervisor does not wait for a processor, and gets no excuse.
func (l *liveness) measureSupervisor(p view.Process, now proc.CPUStats) {
	s := l.states[p]
	if s.supervisorLate != nil {
		l.supervisors.Excuse(p, now.WaitSince(*s.supervisorLate))
	}
	s.supervisorLate = &now
}

// hungSupervisor returns the reason for ending a process whose supervisor has not answered for too long.
// stopped tells whether the program is stopped instead.
func (l *liveness) hungSupervisor(p view.Process) (reason string, stopped bool) {
	if l.states[p].stopped {
		return fmt.Sprintf("has been stopped for %v", l.supervisors.Hang()), true
	}
	return fmt.Sprintf("its supervisor has not answered for %v", l.supervisors.Hang()), false
}
