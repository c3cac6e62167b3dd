package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A moment is an action at a time while the job runs.
type moment struct {
	at  time.Duration // time since the job began to run
	do  func()
	end bool // end of a strike: it runs even if the job has ended by then
}

// beforeTheJob is the time of a fault that hits a peer before the job runs. A failure that it causes may precede the
// moment when the test learns that the job runs.
const beforeTheJob time.Duration = math.MinInt64

// fight carries out the plan until the job or the plan ends. When it returns, all temporary faults
// have ended.
func (b *battle) fight() {
	b.begun = time.Now()
	b.chronicle = newChronicle(b.begun)
	b.chronicle.follow(b.job)
	for _, p := range b.aimedAt(func(p *peerProcess) bool { return !p.alive() || p == b.early }) {
		b.hurt(p, nemesis.Death, beforeTheJob, true)
	}
	if b.plan.Lie != "" {
		b.deceive()
	}
	for _, s := range b.plan.Strikes {
		b.todo = append(b.todo, moment{at: s.At, do: func() { b.strike(s) }})
	}
	for running := true; len(b.todo) > 0; {
		slices.SortStableFunc(b.todo, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
		next := b.todo[0]
		b.todo = b.todo[1:]
		if running = running && b.sleep(next.at); running || next.end {
			next.do()
		} else {
			b.tally.late++
		}
	}
	b.job.wait()
}

// deceive records that a peer lies: the peer, and the processes that run there, may be failed.
func (b *battle) deceive() {
	liar := b.peers[nemesis.Liar]
	b.note("%s %s", liar.id, b.plan.Lie)
	b.tally.lies[b.plan.Lie]++
	b.ending.Liar, b.since[liar.id] = "…"+liar.id[len(liar.id)-8:], 0
	for _, p := range b.aimedAt(func(p *peerProcess) bool { return p == liar }) {
		b.hurt(p, nemesis.Doubt, 0, true)
	}
}

// sleep waits for a moment of the fight and reports whether the job still runs.
func (b *battle) sleep(at time.Duration) bool {
	ended := b.job.ended
	if b.orphan {
		ended = nil // unknown
	}
	select {
	case <-ended:
	case <-time.After(time.Until(b.begun.Add(at))):
	}
	return b.runs()
}

// runs reports whether the job still runs, as far as the test knows.
func (b *battle) runs() bool {
	select {
	case <-b.job.ended:
		return b.orphan
	default:
		return true
	}
}

// strike carries out a strike, unless the job need not survive it, and schedules its end.
func (b *battle) strike(s nemesis.Strike) {
	harm, harmed, since := maps.Clone(b.harm), maps.Clone(b.harmed), maps.Clone(b.since)
	b.weigh(s)
	if !b.plan.Beyond && len(b.exposed()) > 0 {
		b.harm, b.harmed, b.since = harm, harmed, since
		b.tally.spared++
		b.note("spared: %v", s)
		return
	}
	b.note("%v", s)
	b.tally.strikes[string(s.Kind)]++
	b.strikes = append(b.strikes, s)
	if s.Kind == nemesis.KillPeer {
		b.tally.felled[len(b.harmedBy(s))]++
	}
	b.ending.Severed = b.ending.Severed || s.Kind == nemesis.UnplugSubmitter
	end := b.carryOut(s)
	switch {
	case end == nil:
	case s.Kind.Wakes():
		b.todo = append(b.todo, b.waking(s, end))
	default:
		b.todo = append(b.todo, moment{at: s.At + s.For, end: true, do: func() {
			b.note("over: %v", s)
			end()
		}})
	}
}

// weigh records the possible harm of a strike, by itself and in combination with earlier ones.
func (b *battle) weigh(s nemesis.Strike) {
	for _, p := range b.harmedBy(s) {
		b.hurt(p, s.Kind.Harm(), s.At, !s.Kind.Single())
	}
	sameMachine := func(x, y nemesis.Strike) bool { return b.at(x.Victim) == b.at(y.Victim) }
	for _, silent := range s.TooMuch(b.strikes, sameMachine) {
		for _, p := range b.aimedAt(func(p *peerProcess) bool { return p == b.at(silent.Victim) }) {
			b.hurt(p, nemesis.Doubt, s.At, true)
		}
	}
}

// hurt records that a process, and possibly its peer, may have been harmed at a time.
func (b *battle) hurt(p nemesis.Process, harm nemesis.Harm, at time.Duration, peer bool) {
	b.harm[p] = max(b.harm[p], harm)
	if _, was := b.harmed[p]; !was {
		b.harmed[p] = at
	}
	id := b.at(p).id
	if _, was := b.since[id]; peer && !was {
		b.since[id] = at
	}
}

// lookAgain is the interval between checks whether a stopped process has been failed.
const lookAgain = 100 * time.Millisecond

// waking returns a moment that resumes the targets of a strike some time after they have been
// failed, or when the job has ended.
func (b *battle) waking(s nemesis.Strike, wake func()) moment {
	stopped := b.harmedBy(s)
	var look func(at time.Duration) moment
	look = func(at time.Duration) moment {
		return moment{at: at, end: true, do: func() {
			failed, all := b.chronicle.failedBy(stopped)
			switch {
			case b.runs() && !all:
				b.todo = append(b.todo, look(at+lookAgain))
			case b.runs() && at < failed+s.For:
				b.todo = append(b.todo, look(failed+s.For))
			default:
				b.wake(s, wake)
			}
		}}
	}
	return look(s.At + lookAgain)
}

// wake resumes the targets of a strike.
func (b *battle) wake(s nemesis.Strike, wake func()) {
	if b.runs() && b.at(s.Victim).alive() && b.target(s) > 0 { // the target has not been killed
		b.note("resumed after it was failed: %v", s)
		b.tally.woke[string(s.Kind)]++
	}
	wake()
}

// harmedBy returns the processes that a strike may harm.
func (b *battle) harmedBy(s nemesis.Strike) []nemesis.Process {
	switch {
	case s.Kind.Harm() == nemesis.None:
		return nil
	case s.Kind.Single():
		return []nemesis.Process{s.Victim}
	}
	return b.aimedAt(func(p *peerProcess) bool {
		return p == b.at(s.Victim) || s.Kind.Pair() && p == b.at(s.Other)
	})
}

// aimedAt returns the processes of the job on peers for which such returns true.
func (b *battle) aimedAt(such func(*peerProcess) bool) []nemesis.Process {
	var all []nemesis.Process
	for rank := range b.plan.N {
		for replica := range b.plan.R {
			if p := (nemesis.Process{Rank: rank, Replica: replica}); such(b.at(p)) {
				all = append(all, p)
			}
		}
	}
	return all
}

// at returns the peer of a process.
func (b *battle) at(p nemesis.Process) *peerProcess { return b.jobs[0].peerOf(b.peers, p.String()) }

// machine returns the number of a process's machine.
func (b *battle) machine(p nemesis.Process) int { return 1 + slices.Index(b.peers, b.at(p)) }

func (b *battle) carryOut(s nemesis.Strike) (end func()) {
	peer := b.at(s.Victim)
	switch s.Kind {
	case nemesis.KillProcess, nemesis.KillSupervisor:
		signal(syscall.SIGKILL, b.target(s))
	case nemesis.StopProcess, nemesis.PauseProcess, nemesis.StopSupervisor, nemesis.StopPeer, nemesis.PausePeer:
		return stop(b.target(s))
	case nemesis.Freeze:
		return stop(append(processesIn(peer.home), b.target(s))...)
	case nemesis.KillPeer:
		peer.kill()
	case nemesis.KillSubmitter:
		return b.killSubmitter()
	case nemesis.KillResident:
		return b.killResident()
	case nemesis.Clock:
		mend, ok := peer.machine.stepClock(b.t, s.By)
		if !ok {
			b.undone(s.Kind, peer.machine.clock == "")
		}
		return mend
	case nemesis.FullDisk:
		clear, ok := fill(b.t, peer.home)
		if !ok {
			b.undone(s.Kind, false)
		}
		return clear
	default:
		return b.disturb(b.disturbance(s))
	}
	return nil
}

// undone records that a strike could not be carried out. expected reports whether that is
// expected; otherwise the test lacks permission.
func (b *battle) undone(k nemesis.Kind, expected bool) {
	b.note("the strike could not be carried out")
	b.tally.strikes[string(k)]--
	if !expected {
		b.tally.undone[string(k)]++
	}
}

// killSubmitter kills p2prun, and returns a function that resumes the job if possible.
func (b *battle) killSubmitter() (attach func()) {
	if b.orphan {
		b.undone(nemesis.KillSubmitter, true) // it was killed earlier
		return nil
	}
	b.job.kill()
	if b.job.status != -1 { // the job had ended
		return nil
	}
	b.orphan = true
	b.chronicle.following.Wait()
	b.resumed()
	return b.attach
}

// resumed records that another process has resumed the job, or will.
func (b *battle) resumed() {
	kept, over := b.chronicle.state()
	b.ending.Resumed, b.ending.Kept, b.ending.Over = true, kept || b.ending.Kept, over
}

// killResident kills the peer of the submitter's machine, which may hold the job.
func (b *battle) killResident() (boot func()) {
	if !b.submitter.alive() {
		b.undone(nemesis.KillResident, true) // it was killed earlier
		return nil
	}
	b.submitter.kill()
	if b.plan.Client {
		b.voteless = true
		b.resumed()
	}
	return b.bootResident
}

// attach resumes a job whose p2prun was killed.
func (b *battle) attach() {
	if b.plan.Client {
		b.bootResident()
		eventually(b.t, "a job without an attached p2prun", b.submitter.unattached)
	}
	b.job = b.machines[0].startJob(b.t, "--home", b.home, "--json", "--attach")
	b.jobs = append(b.jobs, b.job)
	b.chronicle.follow(b.job)
	b.orphan, b.voteless = false, b.voteless || !b.plan.Client
}

// target returns the process ID of the target of a strike at a single process, or 0 if it has
// ended.
func (b *battle) target(s nemesis.Strike) int {
	switch s.Kind {
	case nemesis.StopPeer, nemesis.PausePeer, nemesis.Freeze:
		return b.at(s.Victim).cmd.Process.Pid
	case nemesis.KillSupervisor, nemesis.StopSupervisor:
		return parentOf(b.pid(s.Victim))
	}
	return b.pid(s.Victim)
}

// pid returns the process ID of a process of the job, or 0 if it has ended.
func (b *battle) pid(p nemesis.Process) int {
	pid, _ := b.at(p).rankProcess(p.String())
	return pid
}

// signal sends a signal to some processes, except those that have ended.
func signal(s syscall.Signal, pids ...int) {
	for _, pid := range pids {
		if pid > 1 {
			syscall.Kill(pid, s)
		}
	}
}

// stop stops some processes, and returns a function that resumes them. If one has ended by then,
// SIGCONT to a process that reuses its ID is harmless.
func stop(pids ...int) (wake func()) {
	signal(syscall.SIGSTOP, pids...)
	return func() { signal(syscall.SIGCONT, pids...) }
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
