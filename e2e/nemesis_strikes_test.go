package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A moment is something to do while the job runs.
type moment struct {
	at  time.Duration // after the job has begun to run
	do  func()
	end bool // of a strike: it is done even if the job has ended by then
}

// fight carries the plan out until the job ends or the plan does. All that was to end
// some time has ended then.
func (b *battle) fight() {
	b.begun = time.Now()
	for _, p := range b.aimedAt(func(p *peerProcess) bool { return !p.alive() || p == b.early }) {
		b.harm[p], b.struck[b.at(p)] = nemesis.Death, true
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

// sleep waits for a moment of the fight and reports whether the job runs still.
func (b *battle) sleep(at time.Duration) bool {
	select {
	case <-b.job.ended:
		return false
	case <-time.After(time.Until(b.begun.Add(at))):
		return true
	}
}

// strike does one thing, unless it would be more than the job has to survive, and
// sees to it that it ends.
func (b *battle) strike(s nemesis.Strike) {
	before := maps.Clone(b.harm)
	for _, p := range b.harmedBy(s) {
		b.harm[p] = max(b.harm[p], s.Kind.Harm())
	}
	if !b.plan.Beyond && len(b.exposed()) > 0 {
		b.harm = before
		b.tally.spared++
		b.note("spared: %v", s)
		return
	}
	if !s.Kind.Single() {
		for _, p := range b.harmedBy(s) {
			b.struck[b.at(p)] = true
		}
	}
	b.note("%v", s)
	b.tally.strikes[string(s.Kind)]++
	b.severed = b.severed || s.Kind == nemesis.UnplugSubmitter
	end := b.carryOut(s)
	if end == nil {
		return
	}
	over := moment{at: s.At + s.For, end: true, do: func() {
		b.note("over: %v", s)
		end()
	}}
	if s.For == 0 {
		over.at = atTheEnd
	}
	b.todo = append(b.todo, over)
}

// atTheEnd is later than any job ends.
const atTheEnd = time.Hour

// harmedBy are the processes that a strike may harm.
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

// aimedAt are the processes of the job that run on such peers.
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
func (b *battle) at(p nemesis.Process) *peerProcess { return b.job.peerOf(b.peers, p.String()) }

// machine returns the number of a process's machine.
func (b *battle) machine(p nemesis.Process) int { return 1 + slices.Index(b.peers, b.at(p)) }

func (b *battle) carryOut(s nemesis.Strike) (end func()) {
	peer := b.at(s.Victim)
	switch s.Kind {
	case nemesis.KillProcess:
		signal(b.pid(s.Victim), syscall.SIGKILL)
	case nemesis.KillSupervisor:
		signal(parentOf(b.pid(s.Victim)), syscall.SIGKILL)
	case nemesis.StopProcess, nemesis.PauseProcess:
		return stop(b.pid(s.Victim))
	case nemesis.StopSupervisor:
		return stop(parentOf(b.pid(s.Victim)))
	case nemesis.KillPeer:
		peer.kill()
	case nemesis.KillSubmitter:
		b.orphan = true
		b.job.cmd.Process.Kill()
	case nemesis.Clock:
		mend, ok := peer.machine.stepClock(b.t, s.By)
		if !ok {
			b.note("which cannot be done to that peer")
			b.tally.strikes[string(s.Kind)]--
		}
		return mend
	case nemesis.FullDisk:
		return fill(b.t, peer.home)
	case nemesis.StopPeer, nemesis.PausePeer:
		return stop(peer.cmd.Process.Pid)
	default:
		return b.disturb(b.disturbance(s))
	}
	return nil
}

// pid returns a process of the job, or 0 if it has ended.
func (b *battle) pid(p nemesis.Process) int {
	pid, _ := b.at(p).rankProcess(p.String())
	return pid
}

// signal sends a signal. A process that has ended gets none.
func signal(pid int, s syscall.Signal) {
	if pid > 1 {
		syscall.Kill(pid, s)
	}
}

// stop stops a process, and returns how it is woken. If it has ended by then, whoever
// has its number is told to go on, which does no harm.
func stop(pid int) (wake func()) {
	signal(pid, syscall.SIGSTOP)
	return func() { signal(pid, syscall.SIGCONT) }
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
