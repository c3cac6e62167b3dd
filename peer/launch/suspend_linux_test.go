package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/unruly"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
)

func init() {
	programs["wakeful"] = func([]string) int { return wakeful() }
	programs["churn"] = func([]string) int { return churn() }
	programs["breed"] = func([]string) int { return breed() }
}

// wakeful computes, and resumes itself by timers whenever it is stopped.
func wakeful() int {
	if err := unruly.StartResumeTimers(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for n := uint64(1); n > 0; n++ { // until it is killed
	}
	return 0
}

// TestO2ProgramThatResumesItselfIsEnded checks that a program that does not remain suspended is ended.
func TestO2ProgramThatResumesItselfIsEnded(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "wakeful")
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	j.peers[0].launch.Pause(Pause{Rule: "battery", Most: time.Hour})
	if e := j.links[0].exited(view.Process{}); e.Reason != errNotSuspended.Error() {
		t.Errorf("ended with %v", e)
	}
	j.stop()
}

// TestUnresponsiveSupervisorIsKilledWhileSuspended checks that a supervisor that does not answer while its
// program is suspended is killed, and its program with it.
func TestUnresponsiveSupervisorIsKilledWhileSuspended(t *testing.T) {
	skip.Long(t)
	j := newTestJob(t, 1, 1, nil, "shell", "echo ready; exec sleep 3600")
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	for _, pids := range g.processes() {
		syscall.Kill(supervisorOf(t, pids), syscall.SIGSTOP)
	}
	j.peers[0].launch.Pause(Pause{Rule: "battery", Most: time.Hour})
	if e := j.links[0].exited(view.Process{}); e.Reason != "its supervisor has not answered for 5s" {
		t.Errorf("ended with %v", e)
	}
	j.stop()
}

// supervisorOf returns the parent of the given processes that is none of them.
func supervisorOf(t *testing.T, pids []int) int {
	t.Helper()
	for _, pid := range pids {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		line, _, _ := strings.Cut(rest, "\n")
		if parent, _ := strconv.Atoi(line); parent > 0 && !slices.Contains(pids, parent) {
			return parent
		}
	}
	t.Fatalf("no supervisor found for processes %v", pids)
	return 0
}

// churn behaves like typical Go programs: it computes, creates garbage, starts and ends threads, and runs
// other programs.
func churn() int {
	for range 3 {
		go func() { // until this process ends
			for {
				_ = make([]byte, 1<<16)
			}
		}()
		go func() { // until this process ends
			for {
				done := make(chan bool)
				go func() {
					runtime.LockOSThread() // the thread ends with the goroutine
					close(done)
				}()
				<-done
			}
		}()
	}
	for {
		if err := exec.Command("/bin/true").Run(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
}

// TestHonestProcessesStopAndResume checks that honest processes stop, whatever they do, and resume afterwards.
func TestHonestProcessesStopAndResume(t *testing.T) {
	skip.Long(t)
	for name, args := range map[string][]string{
		"forks":        {"shell", "while :; do (:); /bin/true; done"},
		"many at once": {"shell", "for i in 1 2 3 4 5 6 7 8; do (while :; do (:); /bin/true; done) & done; wait"},
		"writes":       {"shell", "while :; do dd if=/dev/zero of=f bs=1M count=8 conv=fsync 2>/dev/null; mv f g; done"},
		"job control":  {"shell", "while :; do sleep 60 & kill -STOP $!; kill -CONT $!; kill $!; wait $! 2>/dev/null; done"},
		"Go":           {"churn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, 2, 1, nil, args...)
			j.start()
			here, _ := j.peers[0].launch.lookup(j.spec.ID)
			g := newGuard(here, j.instances(0))
			for range 30 {
				before := cpuTimes(g)
				j.eventually("the processes run", func() bool { return allGrow(before, cpuTimes(g)) })
				g.suspend()
				j.eventually("all programs are suspended", func() bool { return j.suspendedPrograms() == 2 })
				g.endAwake()
				g.resume()
			}
			for _, m := range g.meters {
				if m.over {
					t.Error("an honest process was ended as one that does not remain suspended")
				}
			}
			j.stop()
		})
	}
}

// cpuTimes returns the processor time of each meter's processes.
func cpuTimes(g *guard) map[*meter]time.Duration {
	all := make(map[*meter]time.Duration)
	for m, pids := range g.processes() {
		all[m] = m.look(pids).ran
	}
	return all
}

// allGrow reports whether all processes have run between two measurements.
func allGrow(before, now map[*meter]time.Duration) bool {
	for m, ran := range now {
		if ran <= before[m] {
			return false
		}
	}
	return true
}

// breed creates children for which the kernel has to copy much memory.
func breed() int {
	memory, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // an error means that there are no huge pages
		for at := 0; at < len(memory); at += os.Getpagesize() {
			memory[at] = 1
		}
		err = unruly.ForkRepeatedly()
	}
	fmt.Println(err)
	return 1
}

// TestChildBeingCreatedIsResumed checks that a child resumes too, if its parent is creating it when all are
// stopped and when they are resumed.
func TestChildBeingCreatedIsResumed(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "breed")
	j.start()
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	all := func() (pids []int) {
		for _, of := range g.processes() {
			pids = append(pids, of...)
		}
		return pids
	}
	j.eventually("it has a child", func() bool { return len(all()) > 1 })
	for range 40 {
		before := all()
		g.suspend()
		g.resume() // as if the owner resumed the job at once
		j.eventually("all processes resume", func() bool {
			g.check()
			now := all()
			another := slices.ContainsFunc(now, func(pid int) bool { return !slices.Contains(before, pid) })
			return another && !strings.Contains(statesOf(now), "T")
		})
	}
	j.stop()
}

// TestProcessStoppedBeforeIsNotResumed checks that a process that was already stopped is not resumed with the
// others.
func TestProcessStoppedBeforeIsNotResumed(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "shell", "sleep 3600 & kill -STOP $!; while :; do :; done")
	j.start()
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	stopped := func() []int { return proc.Stopped(g.processes()[g.meters[0]]) }
	j.eventually("a process has stopped itself", func() bool { return len(stopped()) == 1 })
	before := stopped()
	g.suspend()
	j.eventually("all processes are suspended", func() bool { return len(stopped()) == 2 })
	j.eventually("no process runs", func() bool { return !g.endAwake() })
	g.resume()
	j.eventually("the other process resumes", func() bool { return len(stopped()) == 1 })
	if now := stopped(); !slices.Equal(now, before) {
		t.Errorf("stopped before %v, and now %v", before, now)
	}
	syscall.Kill(before[0], syscall.SIGCONT)
	j.eventually("SIGCONT resumes it", func() bool { return len(stopped()) == 0 })
	j.stop()
}

// TestMissedProcessIsResumed checks that a process that is still stopped after the others were resumed is resumed
// too, and does not count as stopped by the program, even if the job is suspended again.
func TestMissedProcessIsResumed(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "shell", "while :; do :; done")
	j.start()
	g := newGuard(j.hosted(0), j.instances(0))
	stopped := func() []int { return proc.Stopped(g.processes()[g.meters[0]]) }
	for _, again := range []bool{false, true} {
		g.suspend()
		j.eventually("it is suspended", func() bool { return len(stopped()) == 1 })
		missed := stopped()[0]
		g.resume()
		syscall.Kill(missed, syscall.SIGSTOP)
		j.eventually("it is stopped", func() bool { return len(stopped()) == 1 })
		if again {
			g.suspend()
			g.resume()
		}
		j.eventually("it resumes", func() bool {
			g.check()
			return len(stopped()) == 0
		})
	}
	j.stop()
}

// TestStoppedSupervisorDoesNotDelayOthers checks that the programs are suspended although the supervisor of one
// of them does not answer.
func TestStoppedSupervisorDoesNotDelayOthers(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "shell", "while :; do :; done")
	j.start()
	g := newGuard(j.hosted(0), j.instances(0))
	stopped := func(m *meter) bool { return len(proc.Stopped(g.processes()[m])) == 1 }
	first, second := g.meters[0], g.meters[1]
	supervisor := first.live.program.Supervisor()
	syscall.Kill(supervisor, syscall.SIGSTOP)
	g.suspend()
	j.eventually("the other program is suspended", func() bool { return stopped(second) })
	g.stopPrograms() // the next round
	if stopped(first) || first.process.ctx.Err() != nil {
		t.Error("the guard has waited for a supervisor that does not answer")
	}
	g.resume()
	syscall.Kill(supervisor, syscall.SIGCONT)
	j.eventually("both programs resume", func() bool {
		g.check()
		select {
		case <-first.suspension.requested:
			return !stopped(first) && !stopped(second)
		default:
			return false
		}
	})
	if err := errors.Join(first.process.ctx.Err(), second.process.ctx.Err()); err != nil {
		t.Errorf("a process has ended: %v", err)
	}
	j.stop()
}

// TestAwakeRoundsAreCounted checks which suspended processes have run too much.
func TestAwakeRoundsAreCounted(t *testing.T) {
	const ms = time.Millisecond
	type round struct {
		took, user, system time.Duration
		pids               []int
	}
	one := []int{1}
	repeat := func(rounds ...round) []round { return slices.Repeat(rounds, 2*maxAwake) }
	for name, c := range map[string]struct {
		rounds     []round
		over, runs bool // it is to be ended; it may have run in the last round
	}{
		"suspended":               {repeat(round{took: time.Second, pids: one}), false, false},
		"computes":                {repeat(round{time.Second, 900 * ms, 0, one}), true, true},
		"sleeps every fifth":      {repeat(append(slices.Repeat([]round{{time.Second, 900 * ms, 0, one}}, 4), round{took: time.Second, pids: one})...), true, false},
		"computes at 9 %":         {repeat(round{time.Second, 90 * ms, 0, one}), true, true},
		"makes system calls":      {repeat(round{time.Second, 0, 900 * ms, one}), true, true},
		"writes to a slow disk":   {repeat(round{time.Second, 0, 90 * ms, one}), false, true},
		"takes long to stop":      {append(repeat(round{time.Second, 900 * ms, 0, one})[:maxAwake-1], round{took: time.Second, pids: one}), false, false},
		"is looked at late":       {repeat(round{time.Minute, 900 * ms, 0, one}), false, true},
		"its time vanishes":       {repeat(round{time.Second, -ms, 0, one}), true, true},
		"new processes":           {repeat(round{took: time.Second, pids: []int{2}}, round{took: time.Second, pids: []int{3}}), true, true},
		"processes are not found": {repeat(round{time.Second, -time.Hour, 0, nil}), false, true},
	} {
		begin := time.Now()
		s := suspension{last: look{at: begin, pids: one, ran: time.Hour, user: time.Hour}}
		now, runs := s.last, false
		for _, r := range c.rounds {
			now.at, now.pids = now.at.Add(r.took), r.pids
			now.ran, now.user = now.ran+r.user+r.system, now.user+r.user
			runs = s.observe(now)
		}
		if over := s.awake >= maxAwake; over != c.over || runs != c.runs {
			t.Errorf("%s: to be ended %v, runs %v; awake in %d rounds", name, over, runs, s.awake)
		}
	}
}
