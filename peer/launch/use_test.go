package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// TestO3ResourceUseIsReported checks the reported resource use while a program computes.
func TestO3ResourceUseIsReported(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux, which tells")
	}
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "exceed", "cpu")
	j.start()
	service := j.peers[0].launch
	for late := time.Now().Add(eventTimeout); ; time.Sleep(10 * time.Millisecond) { // interval between polls
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
	j.stop()
}

// TestProgramsHaveLowPriority checks the niceness of programs, and the weight of their control group.
func TestProgramsHaveLowPriority(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux: programs have the usual priority elsewhere")
	}
	t.Run("niceness 17", func(t *testing.T) {
		giveWay(t, 17, map[string]string{"cpu.shares": "23", "cpu.weight": "2", "cpu.idle": "0"})
	})
	t.Run("niceness 19", func(t *testing.T) { giveWay(t, MostNiceness, map[string]string{"cpu.idle": "1"}) })
	for n, want := range map[int]int64{0: 1024, 1: 819, 10: 110, 19: 15} {
		if got := weightOf(n); got != want {
			t.Errorf("niceness %d has weight %d, want %d", n, got, want)
		}
	}
}

func giveWay(t *testing.T, niceness int, want map[string]string) {
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
			t.Error("no process runs")
		}
	}
	here, _ := service.lookup(j.spec.ID)
	wantFiles(t, here.confinement.group.Folders(), want)
	j.stop()
}

// wantFiles checks the contents of files in the given folders, as far as they exist.
func wantFiles(t *testing.T, folders []string, want map[string]string) {
	t.Helper()
	for _, folder := range folders {
		for file, want := range want {
			if got, err := os.ReadFile(filepath.Join(folder, file)); err == nil && strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, want %s", file, got, want)
			}
		}
	}
}

// TestControlGroupHasItsWeightFromTheStart checks that a job's control group has its weight before its
// programs run, and is not idle then.
func TestControlGroupHasItsWeightFromTheStart(t *testing.T) {
	groups := cgroup.Open(t.TempDir())
	if why := groups.Missing(cgroup.CPU); why != nil {
		skip.Lacks(t, why)
	}
	c := &confinement{
		groups: groups, job: "0123", processes: 4, niceness: MostNiceness, grant: limits.Grant{Slot: limits.Limits{CPU: 100}},
	}
	if err := c.makeGroup(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.group.Remove() })
	wantFiles(t, c.group.Folders(), map[string]string{"cpu.shares": "60", "cpu.weight": "5", "cpu.idle": "0"})
	if err := c.lowerPriority(); err != nil {
		t.Error(err)
	}
	wantFiles(t, c.group.Folders(), map[string]string{"cpu.idle": "1"})
}

// TestKilledJobGetsDefaultWeight checks that the job's control group gets the default weight once all its
// processes have been killed.
func TestKilledJobGetsDefaultWeight(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "sleep")
	service := j.peers[0].launch
	if why := service.groups.Missing(cgroup.CPU); why != nil {
		skip.Lacks(t, why)
	}
	service.config.Niceness = MostNiceness
	service.SetGrant(limits.Grant{Slot: limits.Limits{Processes: 512}})
	j.start()
	here, _ := service.lookup(j.spec.ID)
	folders := here.confinement.group.Folders()
	stays := exec.Command("sleep", "3600") // keeps the group from being removed at once
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { // ends with the process
		defer close(reaped)
		stays.Wait()
	}()
	t.Cleanup(func() { stays.Process.Kill(); <-reaped })
	beside, err := here.confinement.group.NewProcess("stays", cgroup.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range beside.Folders() {
		if err := os.WriteFile(filepath.Join(f, "cgroup.procs"), []byte(strconv.Itoa(stays.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	answered(t, here, func() bool {
		here.here.local[view.Process{Rank: 0}].kill()
		wantFiles(t, folders, map[string]string{"cpu.idle": "1"})
		here.here.local[view.Process{Rank: 1}].kill()
		wantFiles(t, folders, map[string]string{"cpu.idle": "0", "cpu.shares": "1024", "cpu.weight": "100"})
		return true
	})
	j.stop()
}

// TestStarvedStateIsAccurate checks that a process counts as starved until it answers, gets processor time
// again, or ends. Being suspended does not end that.
func TestStarvedStateIsAccurate(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		then func(j *job, p *process, now proc.CPUStats)
		want bool
	}{
		{"stopped by the guard", func(j *job, _ *process, _ proc.CPUStats) {
			j.liveness.excuse(nil, func([]view.Process) map[view.Process][]int { return nil })
		}, true},
		{"answers", func(j *job, p *process, _ proc.CPUStats) { p.handle(proclink.Message{Type: proclink.Pong}) }, false},
		{"still starved", func(j *job, p *process, now proc.CPUStats) {
			j.liveness.measureProgram(p.id, proc.CPUStats{At: now.At.Add(time.Second), Waited: now.Waited + time.Second})
		}, true},
		{"hangs", func(j *job, p *process, now proc.CPUStats) {
			j.liveness.measureProgram(p.id, proc.CPUStats{At: now.At.Add(time.Second), Waited: now.Waited})
		}, false},
		{"ends", func(j *job, p *process, _ proc.CPUStats) { p.exited(supervisor.Exit{}) }, false},
	} {
		id := view.Process{}
		j := &job{here: processSet{order: []view.Process{id}}, liveness: newLiveness(zerolog.Nop())}
		j.liveness.started(id)
		j.board = new(switchboard.Board)
		p := &process{job: j, id: id, cancel: func() {}}
		j.here.local = map[view.Process]*process{id: p}
		begin, later := proc.CPUStats{At: now}, proc.CPUStats{At: now.Add(time.Second), Waited: time.Second}
		j.liveness.measureProgram(id, begin)
		if j.liveness.starved() != 0 {
			t.Errorf("%s: starved before anything is known", tt.name)
		}
		j.liveness.measureProgram(id, later)
		if j.liveness.starved() != 1 {
			t.Errorf("%s: not starved at the beginning", tt.name)
		}
		p.failedInView = tt.name == "ends" // its end need not be reported
		tt.then(j, p, later)
		if got := j.liveness.starved() == 1; got != tt.want {
			t.Errorf("%s: starved is %v", tt.name, got)
		}
	}
}

// TestStarvedSupervisorIsNotEnded checks that a supervisor that lacks a processor is excused, as is one
// whose peer lacks a processor. One that is stopped is not.
func TestStarvedSupervisorIsNotEnded(t *testing.T) {
	for name, tt := range map[string]struct{ own, peer time.Duration }{ // time spent waiting for a processor, per second
		"starves":         {time.Second, 0},
		"has a weak peer": {0, time.Second},
		"is stopped":      {0, 0},
	} {
		id := view.Process{}
		l := newLiveness(zerolog.Nop())
		l.started(id)
		own := proc.CPUStats{At: time.Now()}
		peer, ended := own, false
		for passed := time.Duration(0); passed < 2*faultdetect.DefaultHang; passed += time.Second {
			l.measureSupervisor(id, own)
			l.measurePeer(peer)
			_, hung := l.supervisors.Tick(passed)
			ended = ended || len(hung) > 0
			own.At, own.Waited = own.At.Add(time.Second), own.Waited+tt.own
			peer.At, peer.Waited = own.At, peer.Waited+tt.peer
		}
		if ended != (tt.own+tt.peer == 0) {
			t.Errorf("process that %s: ended is %v", name, ended)
		}
	}
}

// instances returns the running processes of the job on one of its peers.
func (j *testJob) instances(peer int) []*instance {
	j.Helper()
	here := j.hosted(peer)
	return answered(j, here, here.here.instances)
}

// TestProcessesOfInstancesAreFound checks that the processes of several instances are found, each for its
// own.
func TestProcessesOfInstancesAreFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux, which tells")
	}
	j := newTestJob(t, 3, 1, nil, "sleep")
	j.start()
	instances := j.instances(0)
	found, whose := processesOf(new(supervisor.Census), instances), make(map[int]*instance)
	for _, i := range instances {
		if len(found[i]) == 0 {
			t.Error("an instance has no process")
		}
		for _, pid := range found[i] {
			if whose[pid] != nil {
				t.Errorf("process %d belongs to two instances", pid)
			}
			whose[pid] = i
		}
	}
	if len(instances) != 3 || len(processesOf(new(supervisor.Census), nil)) != 0 {
		t.Errorf("%d instances; without instances: %v", len(instances), processesOf(new(supervisor.Census), nil))
	}
	j.stop()
}

// TestHangReasonDescribesTheProgram checks that the reason for ending a program distinguishes a busy loop
// from waiting.
func TestHangReasonDescribesTheProgram(t *testing.T) {
	const ms = time.Millisecond
	begin := proc.CPUStats{At: time.Now(), Ran: time.Second, Waited: time.Second}
	for name, tt := range map[string]struct {
		late *lateness
		want string
	}{
		"was never looked at":        {nil, ""},
		"the kernel reports nothing": {&lateness{proc.CPUStats{At: begin.At}, proc.CPUStats{At: begin.At.Add(time.Second)}}, ""},
		"spins": {
			&lateness{begin, proc.CPUStats{At: begin.At.Add(1500 * ms), Ran: begin.Ran + 1201*ms, Waited: begin.Waited + 299*ms}},
			" (of the last 1.5s it ran for 1.2s and waited for a processor for 300ms)",
		},
		"waits": {&lateness{begin, proc.CPUStats{At: begin.At.Add(1500 * ms), Ran: begin.Ran, Waited: begin.Waited}},
			" (of the last 1.5s it ran for 0s and waited for a processor for 0s)"},
	} {
		if got := tt.late.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestProgramHangFollowsTheToleratedHang checks the tolerance for programs against the job's, including its
// bounds.
func TestProgramHangFollowsTheToleratedHang(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		hang     time.Duration
		replicas int
		want     time.Duration
	}{
		{2 * s, 2, 2500 * time.Millisecond},
		{0, 2, 2 * s},
		{time.Minute, 2, time.Minute + alivePeriod},
		{2 * s, 1, 2500 * time.Millisecond},
		{10 * time.Minute, 1, faultdetect.DefaultHang}, // the submitter's default
	} {
		if got := programHang(c.hang, c.replicas); got != c.want {
			t.Errorf("a job of %d replicas that tolerates %v: %v, want %v", c.replicas, c.hang, got, c.want)
		}
	}
}

// TestSupervisorHangFollowsTheToleratedHang checks the tolerance for supervisors, which follows the job's
// if that is long and the job has replicas.
func TestSupervisorHangFollowsTheToleratedHang(t *testing.T) {
	for _, c := range []struct {
		hang     time.Duration
		replicas int
		want     time.Duration
	}{
		{2 * time.Second, 2, faultdetect.DefaultHang},
		{30 * time.Second, 2, 30*time.Second + alivePeriod},
		{30 * time.Second, 1, faultdetect.DefaultHang},
	} {
		l := newLiveness(zerolog.Nop())
		l.tolerate(c.hang, c.replicas)
		if got := l.supervisors.Hang(); got != c.want {
			t.Errorf("a job of %d replicas that tolerates %v: %v, want %v", c.replicas, c.hang, got, c.want)
		}
	}
}

// TestFrozenProgramIsDetectedWithinTheToleratedHang checks that only time in which a program does not wait
// for a processor counts against it.
func TestFrozenProgramIsDetectedWithinTheToleratedHang(t *testing.T) {
	id := view.Process{}
	for name, tt := range map[string]struct {
		ran, waited time.Duration // per period
		found       time.Duration // 0: never
	}{
		"frozen":                     {0, 0, 2500 * time.Millisecond},
		"spins":                      {alivePeriod, 0, 2500 * time.Millisecond},
		"spins with four threads":    {2 * alivePeriod, 2 * alivePeriod, 2500 * time.Millisecond},
		"spins on half a processor":  {alivePeriod / 2, alivePeriod / 2, 3500 * time.Millisecond},
		"has a tenth of a processor": {alivePeriod / 10, alivePeriod - alivePeriod/10, 11500 * time.Millisecond},
		"starves":                    {0, alivePeriod, 0},
		"two of its threads wait":    {0, 2 * alivePeriod, 0},
	} {
		l := newLiveness(zerolog.Nop())
		l.started(id)
		l.tolerate(2*time.Second, 2)
		l.programs.Watch(id)
		turns, found := proc.CPUStats{At: time.Now()}, time.Duration(0)
		for passed := alivePeriod; passed < time.Minute && found == 0; passed += alivePeriod {
			turns.At = turns.At.Add(alivePeriod)
			turns.Ran, turns.Waited = turns.Ran+tt.ran, turns.Waited+tt.waited
			if len(l.programs.Late()) > 0 {
				l.measureProgram(id, turns)
			}
			if _, hung := l.programs.Tick(passed); len(hung) > 0 {
				found = passed
			}
		}
		if found != tt.found {
			t.Errorf("%s: found after %v, want %v", name, found, tt.found)
		}
	}
}
