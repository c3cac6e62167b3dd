package launch

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
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
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

func init() {
	programs["unruly"] = func(args []string) int { return beUnruly(args[0]) }
	programs["flood"] = func([]string) int { return flood() }
	programs["churn"] = func([]string) int { return churn() }
	programs["breed"] = func([]string) int { return breed() }
}

// unrulyLimit is the disk limit of beUnruly.
const unrulyLimit = 128 << 20

// beUnruly uses nearly all of its disk limit, tries to hide that in the given way, and then uses more and
// more.
func beUnruly(how string) int {
	if err := errors.Join(os.Mkdir("a", 0o700), os.Mkdir("z", 0o700), writeZeros("a/big", unrulyLimit*3/4)); err != nil {
		fmt.Println(err)
		return 1
	}
	var err error
	switch how {
	case "woken by a timer":
		err = unruly.StartResumeTimers()
	case "woken by siblings":
		err = unruly.StartResumers(3)
	case "one after the other":
		err = unruly.StartRenamer("a/big", "z/big", nil, math.MaxInt)
	case "several, one after the other":
		for range 3 {
			err = errors.Join(err, unruly.StartRenamer("a/big", "z/big", nil, math.MaxInt))
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for n := range 128 {
		if how == "woken by a timer" {
			os.Rename("a/big", "z/big")
			os.Rename("z/big", "a/big")
		}
		if err := writeZeros(fmt.Sprint("more-", n), 1<<20); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(unrulyLimit*3/4 + (n+1)*1<<20)
		time.Sleep(time.Millisecond) // the pace at which the program fills its disk
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// writeZeros writes a file of the given size.
func writeZeros(name string, size int) error { return os.WriteFile(name, make([]byte, size), 0o600) }

// TestDiskLimitHoldsForEvasivePrograms checks the disk limit for programs that avoid being stopped for a
// measurement. As in TestLimitsOfAProcessHold, one of a few tries suffices; in each, the program must be
// ended.
func TestDiskLimitHoldsForEvasivePrograms(t *testing.T) {
	skip.Long(t)
	for _, how := range []string{"woken by a timer", "woken by siblings", "one after the other", "several, one after the other"} {
		t.Run(how, func(t *testing.T) {
			holds(t, diskSlack, unrulyLimit, func() float64 {
				j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: unrulyLimit, Processes: 256}}, 1, "unruly", how)
				if !j.peers[0].launch.config.Sandbox.Namespaces {
					skip.Lacks(t, "namespaces: without them, the guard cannot be sure that a program has stopped")
				}
				j.start()
				e, had := j.last(view.Process{})
				if !regexp.MustCompile(`^(exceeded the limit of 128 MiB disk|the process could not be stopped)`).MatchString(e.Reason) {
					t.Errorf("ended with %v", e)
				}
				j.stop()
				return had
			})
		})
	}
}

// A flood writes this many files, each as large as the whole limit and with a single call. On a fast disk a
// call for a smaller file is over before the guard looks.
const (
	floods     = 24
	floodLimit = 512 << 20
)

func flood() int {
	zeros := make([]byte, floodLimit) // uses no memory until it is written
	for n := range floods {
		fd, err := syscall.Open(fmt.Sprint(n), syscall.O_CREAT|syscall.O_WRONLY, 0o600) // not os.File, which would be garbage-collected
		if err != nil {
			fmt.Println(err)
			return 1
		}
		go syscall.Write(fd, zeros) // ends with this process
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// TestLongWritesAreEndedAtTheLimit checks that processes in long write calls, which cannot stop before they
// have exceeded the limit, are ended. As in TestLimitsOfAProcessHold, one of a few tries suffices.
func TestLongWritesAreEndedAtTheLimit(t *testing.T) {
	for try := 1; ; try++ {
		j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: floodLimit}}, 1, "flood")
		j.start()
		here, _ := j.peers[0].launch.lookup(j.spec.ID)
		most := make(chan int64, 1)
		var wanted int64
		go func() { // ends with the process
			had, files := mostIn(here.folder.Process(view.Process{}))
			wanted = files * floodLimit // other calls were stopped before they began
			most <- had
		}()
		e := j.links[0].exited(view.Process{})
		if e.Limit != string(limits.Disk) {
			t.Errorf("ended with %v", e)
		}
		j.stop()
		had := <-most
		t.Logf("had %.1f times the limit of %d under way; %s", float64(had)/floodLimit, wanted/floodLimit, e.Reason)
		if had < wanted*9/10 {
			return
		}
		if try == 4 {
			t.Fatalf("%d bytes were written, want less", had)
		}
	}
}

// mostIn returns the maximum size and number of files of a folder, until it is removed.
func mostIn(folder string) (most, files int64) {
	for {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return most, files
		}
		sum, begun := int64(0), int64(0)
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Size() > 0 {
				sum, begun = sum+info.Size(), begun+1
			}
		}
		if sum > most {
			most, files = sum, begun
		}
		time.Sleep(time.Millisecond) // interval between polls
	}
}

// TestUnresponsiveSupervisorIsKilledWhileStopped checks that a supervisor that does not answer the guard is
// killed, and its program with it.
func TestUnresponsiveSupervisorIsKilledWhileStopped(t *testing.T) {
	skip.Long(t)
	j := newTestJob(t, 1, 1, nil, "shell", "echo ready; exec sleep 3600")
	if !j.peers[0].launch.config.Sandbox.Namespaces {
		skip.Lacks(t, "namespaces: without them, the guard sends the supervisor no request")
	}
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	for _, pids := range g.processes() {
		syscall.Kill(supervisorOf(t, pids), syscall.SIGSTOP)
	}
	g.halt()
	g.resume()
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

// TestResumedProcessIsDetected checks that a process that is being resumed is detected before its files are
// measured. The other programs of TestDiskLimitHoldsForEvasivePrograms hardly resume any process, since all
// stop at one moment.
func TestResumedProcessIsDetected(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "unruly", "woken by a timer")
	if !j.peers[0].launch.config.Sandbox.Namespaces {
		skip.Lacks(t, "namespaces: without them, the guard cannot be sure that a program has stopped")
	}
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	for n := 0; n < 100 && !g.meters[0].over; n++ { // a process that gets no processor time has no timers
		g.halt()
		g.measureStopped()
		g.resume()
	}
	if !g.meters[0].over {
		t.Error("the resumed process was not detected")
	} else if e := j.links[0].exited(view.Process{}); e.Reason != errNotStopped.Error() {
		t.Errorf("ended with %v", e)
	}
	j.stop()
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

// TestHonestProcessesStopAndResume checks that honest processes stop whenever they must, whatever they do,
// and resume afterwards.
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
				g.halt()
				if _, ok := g.measureStopped(); !ok {
					t.Fatal("the job is over")
				}
				for _, m := range g.meters {
					if m.over {
						t.Fatal("an honest process was ended as one that cannot be stopped")
					}
				}
				halted := g.snapshots()
				for late := time.Now().Add(eventTimeout); !allStopped(halted); halted = g.snapshots() { // a waiting process may stop only now
					if time.Now().After(late) {
						t.Fatalf("not stopped: %v", halted)
					}
				}
				g.resume()
				awaitRun(t, g, halted)
			}
			j.stop()
		})
	}
}

// allStopped reports whether all processes of the snapshots were stopped.
func allStopped(snapshots map[*meter]proc.Snapshot) bool {
	for _, s := range snapshots {
		if len(s) == 0 || !stoppedBetween(s, s) {
			return false
		}
	}
	return true
}

// stoppedBetween reports whether the processes were stopped, and have not run between two snapshots.
func stoppedBetween(before, now proc.Snapshot) bool {
	s := proc.NewStopCheck(nil, 0)
	s.Observe(before, 0)
	stopped, _ := s.Observe(now, 0)
	return stopped
}

// awaitRun returns when some processes of each meter have run.
func awaitRun(t *testing.T, g *guard, halted map[*meter]proc.Snapshot) {
	t.Helper()
	for late := time.Now().Add(eventTimeout); ; time.Sleep(time.Millisecond) { // interval between polls
		all := true
		g.resumeLate()
		for m, now := range g.snapshots() {
			all = all && !stoppedBetween(halted[m], now)
		}
		if all {
			return
		}
		if time.Now().After(late) {
			t.Fatal("the processes do not resume")
		}
	}
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
		g.halt()
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
	sleeper := func() (pid int) {
		for late := time.Now().Add(eventTimeout); ; time.Sleep(time.Millisecond) { // interval between polls
			for _, s := range g.snapshots() {
				check := proc.NewStopCheck(s, 0)
				check.Observe(s, 0)
				for pid := range s {
					if !slices.Contains(check.Stopped(), pid) {
						return pid
					}
				}
			}
			if time.Now().After(late) {
				t.Fatal("no process has stopped itself")
			}
		}
	}
	pid := sleeper()
	before := proc.SnapshotOf([]int{pid})
	g.halt()
	if _, ok := g.measureStopped(); !ok {
		t.Fatal("the job is over")
	}
	halted := g.snapshots()
	g.resume()
	awaitRun(t, g, halted)
	if now := proc.SnapshotOf([]int{pid}); !stoppedBetween(before, now) {
		t.Errorf("state %v after the halt, %v before it", now, before)
	}
	syscall.Kill(pid, syscall.SIGCONT)
	awaitGone := time.Now().Add(eventTimeout)
	for stoppedBetween(before, proc.SnapshotOf([]int{pid})) {
		if time.Now().After(awaitGone) {
			t.Fatal("SIGCONT no longer resumes the process")
		}
		time.Sleep(time.Millisecond) // interval between polls
	}
	j.stop()
}
