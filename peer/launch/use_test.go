package launch

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// TestO3OwnerSeesWhatJobsHave asks while a program computes.
func TestO3OwnerSeesWhatJobsHave(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "exceed", "cpu")
	j.start()
	service := j.peers[0].launch
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		jobs := service.Jobs()
		if len(jobs) != 1 {
			t.Fatalf("got %+v, want a job", jobs)
		}
		if u := jobs[0].Use; u.CPU > 0 && u.Memory > 0 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("got %+v, want processor time and memory", jobs[0].Use)
		}
	}
	j.links[0].exited(view.Process{})
	j.stop()
}

func TestStarvedIsWhoWantsToRunAndCannot(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name             string
		took, ran, waits time.Duration
		want             bool
	}{
		{"starved", s, 3 * ms, 997 * ms, true},
		{"two threads, starved", s, 6 * ms, 2 * s, true},
		{"stopped, or waits for something else", s, 0, 0, false},
		{"has a tenth of a processor", s, 100 * ms, 900 * ms, false},
		{"computes", s, s, 0, false},
		{"runs now and then", s, ms, ms, false},
		{"a thread has ended", s, -s, -s, false},
	} {
		begin := turns{at: time.Now(), ran: time.Minute, waited: time.Hour}
		end := turns{at: begin.at.Add(tt.took), ran: begin.ran + tt.ran, waited: begin.waited + tt.waits}
		if got := end.starved(begin); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// TestTurnsAreCounted looks at this process, which computes.
func TestTurnsAreCounted(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("the kernel does not count them")
	}
	before := turnsOf([]int{os.Getpid()}, time.Now())
	for late := time.Now().Add(patience); ; {
		if now := turnsOf([]int{os.Getpid()}, time.Now()); now.ran-before.ran > 10*time.Millisecond {
			break
		}
		if time.Now().After(late) {
			t.Fatal("it has computed, and not run")
		}
	}
	if none := turnsOf([]int{1 << 30}, time.Now()); none.ran != 0 || none.waited != 0 {
		t.Errorf("nobody has had %+v", none)
	}
}

// TestProgramsGiveWay as far as the owner wants, also with a weight of their control group.
func TestProgramsGiveWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs have the usual priority here")
	}
	const niceness = 17
	j := newTestJob(t, 1, 1, nil, "sleep")
	service := j.peers[0].launch
	service.config.Niceness = niceness
	service.SetGrant(limits.Grant{Slot: limits.Limits{Processes: 512}})
	j.start()
	for _, pids := range processesOf(new(supervisor.Census), j.instances(0)) {
		for _, pid := range pids {
			comm, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
			if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid); err != nil || 20-raw != niceness {
				t.Errorf("%s has niceness %d (%v), want %d", comm, 20-raw, err, niceness)
			}
		}
		if len(pids) == 0 {
			t.Error("nothing runs")
		}
	}
	here, _ := service.lookup(j.spec.ID)
	for _, folder := range here.group.Folders() { // they are those of the job for the processors
		for file, want := range map[string]string{"cpu.shares": "23", "cpu.weight": "2"} {
			if got, err := os.ReadFile(filepath.Join(folder, file)); err == nil && strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, want %s", file, got, want)
			}
		}
	}
	for n, want := range map[int]int64{0: 1024, 1: 819, 10: 110, 19: 15} {
		if got := weightOf(n); got != want {
			t.Errorf("niceness %d has weight %d, want %d", n, got, want)
		}
	}
	j.stop()
}

// instances returns what runs of the job on one of its peers.
func (j *testJob) instances(peer int) []*instance {
	j.Helper()
	here, ok := j.peers[peer].launch.lookup(j.spec.ID)
	told := make(chan []*instance, 1)
	if !ok || !here.do(func() { told <- here.instances() }) {
		j.Fatal("the job is not here")
	}
	return <-told
}

// TestProcessesAreTheirInstances finds those of several, each its own.
func TestProcessesAreTheirInstances(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	j := newTestJob(t, 3, 1, nil, "sleep")
	j.start()
	instances := j.instances(0)
	found, whose := processesOf(new(supervisor.Census), instances), make(map[int]*instance)
	for _, i := range instances {
		if len(found[i]) == 0 {
			t.Error("one has no process")
		}
		for _, pid := range found[i] {
			if whose[pid] != nil {
				t.Errorf("process %d is of two", pid)
			}
			whose[pid] = i
		}
	}
	if len(instances) != 3 || len(processesOf(new(supervisor.Census), nil)) != 0 {
		t.Errorf("%d instances, and those of none: %v", len(instances), processesOf(new(supervisor.Census), nil))
	}
	j.stop()
}
