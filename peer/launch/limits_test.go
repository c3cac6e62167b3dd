package launch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/unruly"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// exceed uses more and more of a resource, and prints after each step how much it has. If no limit stops
// it, it ends before it does harm.
func exceed(what string) int {
	const step = 1 << 20
	page := make([]byte, step)
	switch what {
	case "memory":
		for had := step; had < 1<<30; had += step {
			b, err := syscall.Mmap(-1, 0, step, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				fmt.Println(err)
				return 1
			}
			copy(b, page)
			for i := 0; i < step; i += 4096 {
				b[i] = 1
			}
			fmt.Println(had)
		}
	case "shared memory":
		return share()
	case "cpu":
		for range 3 {
			go func() { // until this process ends
				for spun := uint64(1); spun > 0; spun++ {
				}
			}()
		}
		fmt.Println("spins")
		time.Sleep(time.Hour) // until it is killed
	case "processes":
		for had := 1; had < 2000; had++ {
			if exec.Command("/bin/sleep", "3600").Start() != nil {
				time.Sleep(time.Hour) // until it is killed
			}
			fmt.Println(had)
		}
	case "files":
		for {
			fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0) // no os.File, which would be collected
			if err != nil {
				time.Sleep(time.Hour) // until it is killed
			}
			fmt.Println(fd + 1)
		}
	case "disk", "one file", "nameless":
		var f *os.File
		for had := 0; had < 4<<30; had += step {
			if had%(8*step) == 0 && (what != "one file" || f == nil) {
				f, _ = os.Create(strconv.Itoa(had))
			}
			if what == "nameless" {
				os.Remove(f.Name())
			}
			if n, err := f.Write(page); err != nil {
				fmt.Println(had + n)
				return 1
			}
			fmt.Println(had + step)
		}
	case "mapped": // files that have neither a name nor a descriptor
		for had := 0; had < 4<<30; had += 8 * step {
			if err := unruly.HideMapped(strconv.Itoa(had), 8*step); err != nil {
				fmt.Println(err)
				return 1
			}
			fmt.Println(had + 8*step)
		}
	case "time":
		for begun := time.Now(); ; time.Sleep(time.Millisecond) { // the pace at which the program reports its time
			fmt.Println(int(time.Since(begun)))
		}
	}
	return 100
}

// share uses more and more shared memory that is in no page table.
func share() int {
	const step = 1 << 20
	for had := step; had <= 96*step; had += step {
		if err := unruly.HideShared(step); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(had)
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// newLimited returns a job of n processes on a peer with the given grant.
func newLimited(t *testing.T, g limits.Grant, n int, args ...string) *testJob {
	t.Helper()
	j := newTestJob(t, n, 1, nil, args...)
	j.peers[0].launch.config.Grant = g
	return j
}

// last returns how a process has ended, and the last number that it printed.
func (j *testJob) last(p view.Process) (*jobpb.Exited, float64) {
	j.Helper()
	said := j.lastSaid(p)
	return j.links[0].exited(p), said
}

// lastSaid returns the last number that a process printed before it ended.
func (j *testJob) lastSaid(p view.Process) float64 {
	j.Helper()
	return j.lastOf(p, j.links[0].output(p, 1))
}

// lastOf returns the last number in a process's output.
func (j *testJob) lastOf(p view.Process, output string) float64 {
	j.Helper()
	lines := strings.Fields(output)
	for _, line := range slices.Backward(lines[max(0, len(lines)-2):]) { // the last line may be incomplete
		if n, err := strconv.ParseFloat(line, 64); err == nil {
			return n
		}
	}
	j.Fatalf("process %v printed %q", p, lines[max(0, len(lines)-2):])
	return 0
}

// saidIfAny is lastSaid, or 0 if the process printed nothing: another process may have exceeded the common
// limit before this one began.
func (j *testJob) saidIfAny(p view.Process) float64 {
	j.Helper()
	output := j.links[0].output(p, 1)
	if output == "" {
		return 0
	}
	return j.lastOf(p, output)
}

// An excess describes how to exceed a limit.
type excess struct {
	limits limits.Limits
	needs  cgroup.Controller // controller without which the limit is less exact
	most   float64           // maximum of the printed numbers
	named  string            // name of the limit in the report
	slack  time.Duration     // see holds
}

func excesses() map[string]excess {
	disk := limits.Limits{Disk: 512 << 20}
	return map[string]excess{
		"memory":    {limits.Limits{Memory: 128 << 20}, cgroup.Memory, 128 << 20, "128 MiB memory", 0},
		"processes": {limits.Limits{Processes: 40}, cgroup.Pids, 40, "40 processes and threads", 0},
		"files":     {limits.Limits{Files: 100}, "", 100, "100 open files", 0},
		"one file":  {disk, "", 512 << 20, "512 MiB disk", 0},
		"disk":      {disk, "", 512 << 20, "512 MiB disk", diskSlack},
		"nameless":  {disk, "", 512 << 20, "512 MiB disk", diskSlack},
		"mapped":    {disk, "", 512 << 20, "512 MiB disk", diskSlack},
		"time":      {limits.Limits{Time: 3 * time.Second}, "", 3e9, "3s time", 150 * time.Millisecond},
	}
}

// diskSlack is the time in which a program writes 5 % of its disk limit on a fast machine.
const diskSlack = 5 * time.Millisecond

// TestLimitsOfAProcessHold checks that no process gets more than 5 % above a limit, and that the report
// names the limit.
func TestLimitsOfAProcessHold(t *testing.T) {
	skip.Long(t)
	for name, x := range excesses() {
		t.Run(name, func(t *testing.T) {
			holds(t, x.slack, x.most, func() float64 {
				j := newLimited(t, limits.Grant{Slot: x.limits}, 1, "exceed", name)
				j.need(x.needs)
				j.start()
				e, had := j.last(view.Process{})
				if !strings.HasPrefix(e.Reason, "exceeded the limit of "+x.named+": ") || e.Limit == "" {
					t.Errorf("ended with %v", e)
				}
				j.stop()
				return had
			})
		})
	}
}

// TestLimitsOfAJobHold checks that two processes together get no more than 5 % above a limit.
func TestLimitsOfAJobHold(t *testing.T) {
	skip.Long(t)
	for name, x := range excesses() {
		if x.limits.Files > 0 || name == "one file" { // limits of single processes
			continue
		}
		t.Run(name, func(t *testing.T) {
			holds(t, x.slack, x.most, func() float64 {
				j := newLimited(t, limits.Grant{Job: x.limits}, 2, "exceed together", name)
				j.need(x.needs)
				j.start()
				j.awaitInitialized()
				j.begin()
				counted := j.countsTogether(x.needs)
				first := await(j.links[0], (*jobpb.FromPeer).GetExited)
				had := counted()
				if !strings.HasPrefix(first.Reason, "exceeded the limit of "+x.named+" for all processes of the job on this peer: ") || first.Limit == "" {
					t.Errorf("ended with %v", first)
				}
				if x.needs == "" {
					had = j.hadTogether(x)
				}
				j.stop()
				return had
			})
		})
	}
}

// TestRefusedStartNamesTheLimit: other processes of the job may have reached its limit before a process starts.
func TestRefusedStartNamesTheLimit(t *testing.T) {
	j := newLimited(t, limits.Grant{Job: limits.Limits{Processes: 1}}, 1, "hang")
	j.need(cgroup.Pids)
	j.prepare()
	j.tell(j.startMessage())
	s := await(j.links[0], (*jobpb.FromPeer).GetStarted)
	if want := "exceeded the limit of 1 processes and threads for all processes of the job on this peer: "; !strings.Contains(s.Error, want) {
		t.Errorf("the start reports %q, want %q in it", s.Error, want)
	}
}

// hadTogether returns what two processes have used together, by their own account.
func (j *testJob) hadTogether(x excess) float64 {
	j.Helper()
	one, other := j.saidIfAny(view.Process{}), j.saidIfAny(view.Process{Rank: 1})
	if one == 0 && other == 0 {
		j.Fatal("neither process has printed anything")
	}
	if x.limits.Time > 0 {
		return max(one, other)
	}
	return one + other
}

// countsTogether samples the kernel's peak for all processes of the job, until counted is called. If the
// kernel enforces the limit, one process may by now use what the other used before.
func (j *testJob) countsTogether(of cgroup.Controller) (counted func() (most float64)) {
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	stop, most := make(chan struct{}), make(chan float64)
	go func() { // ends when counted is called
		had := int64(0)
		for {
			switch of {
			case cgroup.Memory:
				had = max(had, here.confinement.group.Usage().MostMemory)
			case cgroup.Pids:
				u := here.confinement.group.Usage()
				had = max(had, u.Processes, u.MostProcesses)
			}
			select {
			case <-time.After(time.Millisecond):
			case <-stop:
				most <- float64(had)
				return
			}
		}
	}()
	return func() float64 { close(stop); return <-most }
}

// holds checks that try never uses more than 5 % above most. Limits that the kernel enforces always hold.
// For measured limits, slack is the time in which 5 % can be used. If this peer had to wait as long for a
// processor, because the machine is busy, one success in four tries suffices.
func holds(t *testing.T, slack time.Duration, most float64, try func() (had float64)) {
	t.Helper()
	for n := 1; ; n++ {
		before := proc.CPUStatsOf([]int{os.Getpid()}, time.Now())
		had := try()
		waited := proc.CPUStatsOf([]int{os.Getpid()}, time.Now()).Waited - before.Waited
		t.Logf("had %.4g, %.1f %% of the limit; the peer waited %v for a processor", had, had/most*100, waited)
		if had <= most*1.05 && had > 0 {
			return
		}
		if told := before.Ran > 0; slack == 0 || told && waited < slack || n == 4 {
			t.Fatalf("used %.4g, want at most %.4g", had, most)
		}
	}
}

// need skips the test if control groups with the given controller cannot be created.
func (j *testJob) need(c cgroup.Controller) {
	j.Helper()
	if c == "" {
		return
	}
	if why := j.peers[0].launch.groups.Missing(c); why != nil {
		skip.Lacks(j.T, why)
	}
}

// TestCPULimitHolds checks that programs that compute with many threads stay below the CPU limit.
func TestCPULimitHolds(t *testing.T) {
	skip.Long(t)
	half := limits.Limits{CPU: 50}
	for name, c := range map[string]struct {
		grant limits.Grant
		ranks int
		most  float64 // percent of one processor, in total
	}{
		"a slot":    {limits.Grant{Slot: half}, 1, 50},
		"two slots": {limits.Grant{Slot: half}, 2, 100},
		"a job":     {limits.Grant{Job: half}, 2, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newLimited(t, c.grant, c.ranks, "exceed", "cpu")
			j.need(cgroup.CPU)
			j.start()
			for range c.ranks {
				await(j.links[0], (*jobpb.FromPeer).GetOutput)
			}
			j.computes(c.most)
			j.stop()
		})
	}
}

// computes checks the CPU use of the job on its first peer, in percent of one processor. The quota applies
// to each tenth of a second, and half of a period may be used later: over sixty periods, that is less than
// 3 %.
func (j *testJob) computes(most float64) {
	j.Helper()
	begun, before := time.Now(), j.peers[0].launch.Jobs()[0].Use.CPU
	time.Sleep(6 * time.Second) // the interval over which use is measured
	had := (j.peers[0].launch.Jobs()[0].Use.CPU - before).Seconds() / time.Since(begun).Seconds() * 100
	j.Logf("had %.1f %% of the limit", had/most*100)
	if had > most*1.05 || had <= 0 {
		j.Errorf("used %.1f %% of a processor, want at most %.0f %%", had, most)
	}
}

// TestLimitsAreWatchedWithoutControlGroups checks that the guard enforces limits, less exactly, and that
// the report names the limit. The kernel limits private memory to the limit plus a quarter and dataSlack.
func TestLimitsAreWatchedWithoutControlGroups(t *testing.T) {
	skip.Long(t)
	const memory = 64 << 20
	cases := map[string]struct {
		kind   limits.Kind
		limits limits.Limits
		most   float64 // maximum of the printed numbers; infinite: no bound until the guard measures
	}{
		"memory":        {limits.Memory, limits.Limits{Memory: memory}, memory + memory/4 + dataSlack},
		"shared memory": {limits.Memory, limits.Limits{Memory: memory}, math.Inf(1)},
		"processes":     {limits.Processes, limits.Limits{Processes: 20}, math.Inf(1)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if raceEnabled && c.kind == limits.Memory {
				t.Skip("the race detector needs more memory than is granted: go test -run WithoutControlGroups ./peer/launch")
			}
			j := newLimited(t, limits.Grant{Slot: c.limits}, 1, "exceed", name)
			j.peers[0].launch.groups = &cgroup.Tree{}
			j.start()
			if e, had := j.last(view.Process{}); e.Limit != string(c.kind) || had > c.most {
				t.Errorf("ended with %v after using %.4g", e, had)
			}
			j.stop()
		})
	}
}

// TestControlGroupsAreRemoved checks that no control group is left of a job that stays within its limits.
func TestControlGroupsAreRemoved(t *testing.T) {
	j := newLimited(t, limits.Grant{Slot: limits.Limits{Memory: 256 << 20, CPU: 100, Processes: 100}}, 2, "print", "line", "3", "0")
	groups := j.peers[0].launch.groups
	j.start()
	for rank := range 2 {
		if e := j.links[0].exited(view.Process{Rank: rank}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
	}
	j.stop()
	for _, home := range groups.Home() {
		if left, _ := filepath.Glob(filepath.Join(home, "p2pmpi-*-"+j.spec.ID)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestInputsAboveTheDiskLimit checks that inputs above the disk limit are not fetched, whether the limit
// applies to all or to the submitter's class.
func TestInputsAboveTheDiskLimit(t *testing.T) {
	small := limits.Limits{Disk: 1 << 20}
	for name, c := range map[string]Config{
		"no process": {Grant: limits.Grant{Slot: small}},
		"the class": {Grant: limits.Grant{Slot: limits.Limits{Disk: 1 << 30}}, Decide: func(p2ppeer.ID, []policy.Kind) policy.Decision {
			return policy.Decision{Kind: policy.Native, Limits: small}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newTestJob(t, 1, 1, map[string]string{"in": strings.Repeat("x", 2<<20)}, "print", "line", "1", "0")
			here := &j.peers[0].launch.config
			here.Grant = c.Grant
			if c.Decide != nil {
				here.Decide = c.Decide
			}
			l := j.connect(j.peers[0])
			l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
			want := "the input files: exceeded the limit of 1.0 MiB disk: used 2.0 MiB"
			if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != want {
				t.Errorf("got %q, want %q", p.Error, want)
			}
			j.gone()
		})
	}
}

// TestProgramAboveTheDiskLimit checks that a program that is too large for the disk limit is refused.
func TestProgramAboveTheDiskLimit(t *testing.T) {
	for size, want := range map[int64]string{
		freeProgram:     "",
		freeProgram + 1: "the program: exceeded the limit of 1.0 MiB disk: used 256 MiB",
	} {
		c := &confinement{grant: limits.Grant{Slot: limits.Limits{Disk: 1 << 20}}, program: size}
		got := ""
		if err := c.checkInputs(nil, 1); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d bytes: got %q, want %q", size, got, want)
		}
	}
}

// TestUnenforcedReportsLimits checks that Unenforced returns the limits that the kernel does not
// enforce, and only those that are set.
func TestUnenforcedReportsLimits(t *testing.T) {
	s := &Service{groups: &cgroup.Tree{}}
	if got := s.Unenforced(); len(got) != 0 {
		t.Errorf("without limits: got %v", got)
	}
	s.config.Grant = limits.Grant{Slot: limits.Limits{Memory: 1 << 30, Disk: 1 << 30}, Job: limits.Limits{CPU: 50}}
	got := s.Unenforced()
	if of := s.Unenforced(limits.Limits{Processes: 64}); len(of) != 3 || of[2].Limit != limits.Processes {
		t.Errorf("with a limit of a class: %v", of)
	}
	if len(got) != 2 || got[0].Limit != limits.Memory || got[1].Limit != limits.CPU || got[0].Why == "" || got[0].Instead == "" {
		t.Errorf("got %v", got)
	}
}

// uploads is the number of bytes that upload sends.
const uploads = 3 << 20

// upload makes rank 0 send bytes to rank 1, which prints how many arrived per second.
func upload() int {
	w, err := mpj.Init(context.Background())
	if err != nil {
		panic(err)
	}
	b := make([]byte, 64<<10)
	var begun time.Time
	for sent := 0; sent < uploads && err == nil; sent += len(b) {
		if w.Rank() == 0 {
			err = mpj.Send(w.Comm, b, 1, 0)
			continue
		}
		_, err = mpj.Recv(w.Comm, b, 0, 0)
		if sent == 0 {
			begun = time.Now()
		}
	}
	if w.Rank() == 1 {
		fmt.Println(float64(uploads-len(b)) / time.Since(begun).Seconds())
	} else {
		fmt.Println(strings.Repeat("x", 64))
	}
	if err != nil {
		panic(err)
	}
	if err := w.Finalize(); err != nil {
		panic(err)
	}
	return 0
}

// mostUpload is the upload limit of TestUploadLimitOfMessagesHolds, in bytes per second.
const mostUpload = 1 << 20

// TestUploadLimitOfMessagesHolds checks the upload limit for messages to another machine, per process and
// per job.
func TestUploadLimitOfMessagesHolds(t *testing.T) {
	skip.Long(t)
	for name, g := range uploadGrants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newSpread(t, 2, "upload")
			j.peers[0].launch.config.Grant = g
			j.startSpread()
			j.awaitInitialized()
			j.begin()
			j.follow(2)
			text := j.links[1].output(view.Process{Rank: 1}, 1)
			rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Errorf("rank 1 printed %q", text)
			}
			j.uploads(rate)
			for rank := range 2 {
				if e := j.links[rank].exited(view.Process{Rank: rank}); e.Code != 0 {
					t.Errorf("ended with %v", e)
				}
			}
			j.stop()
		})
	}
}

// uploadGrants returns grants that limit the upload of a process, or of a whole job, to mostUpload.
func uploadGrants() map[string]limits.Grant {
	return map[string]limits.Grant{
		"of a slot": {Slot: limits.Limits{Upload: mostUpload}},
		"of a job":  {Slot: limits.Limits{Upload: 10 * mostUpload}, Job: limits.Limits{Upload: mostUpload}},
	}
}

// uploads checks a rate in bytes per second against the limit.
func (j *testJob) uploads(rate float64) {
	j.Helper()
	j.Logf("%.1f %% of the limit", rate/mostUpload*100)
	if rate > mostUpload*1.05 || rate <= 0 {
		j.Errorf("%.0f bytes in a second, want at most %d", rate, mostUpload)
	}
}

// TestUploadLimitOfOutputHolds checks the upload limit for output, with a submitter that reads as fast as
// it can.
func TestUploadLimitOfOutputHolds(t *testing.T) {
	skip.Long(t)
	for name, g := range uploadGrants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newLimited(t, g, 1, "shell", fmt.Sprintf("yes a line of some output | head -c %d", uploads))
			j.start()
			first := await(j.links[0], (*jobpb.FromPeer).GetOutput)
			begun := time.Now()
			rest := j.links[0].outputFrom(view.Process{}, 1, first.First+recordsIn(first))
			j.uploads(float64(len(rest)) / time.Since(begun).Seconds())
			if len(rest) < uploads/2 {
				t.Errorf("received %d bytes after the first", len(rest))
			}
			j.stop()
		})
	}
}

// TestUploadLimitOfFilesHolds checks the upload limit for output files that the submitter collects.
func TestUploadLimitOfFilesHolds(t *testing.T) {
	skip.Long(t)
	for name, g := range uploadGrants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newLimited(t, g, 1, "shell", fmt.Sprintf("head -c %d /dev/urandom >result.out", uploads)) // not compressible
			j.start()
			if e := j.links[0].exited(view.Process{}); e.Code != 0 {
				t.Errorf("ended with %v", e)
			}
			files := j.collected(view.Process{}, "*.out")
			begun := time.Now()
			if err := j.submitter.files.Fetch(t.Context(), j.peers[0].ID(), j.spec.ID, files.Wants(), nil); err != nil {
				t.Fatal(err)
			}
			j.uploads(uploads / time.Since(begun).Seconds())
			j.stop()
		})
	}
}

// TestSuspendedProcessIsNotHung checks that suspended processes are excused, and are asked again when they
// resume.
func TestSuspendedProcessIsNotHung(t *testing.T) {
	j := new(job)
	if j.halting.excused() {
		t.Error("excused before the first suspension")
	}
	g := guard{job: j}
	g.suspend()
	for range 2 {
		if !j.halting.excused() {
			t.Error("not excused during a suspension")
		}
	}
	g.resume()
	if !j.halting.excused() {
		t.Error("not excused after the suspension")
	}
	if j.halting.excused() {
		t.Error("excused for ever")
	}
}

// TestSuspendedProcessDoesNotCountAsStopped checks that a suspended program does not count as stopped.
func TestSuspendedProcessDoesNotCountAsStopped(t *testing.T) {
	p := &process{}
	j := &job{here: processSet{local: map[view.Process]*process{{}: p}}, liveness: newLiveness(zerolog.Nop())}
	j.liveness.started(view.Process{})
	for _, does := range []int32{notHalted, halted, resumedLately} {
		j.halting.Store(does)
		j.handleAnswer(view.Process{}, true)
		if _, stopped := j.liveness.hungSupervisor(view.Process{}); stopped != (does == notHalted) {
			t.Errorf("stopped is %v when its job does %d", stopped, does)
		}
	}
}

// newJudge returns a guard of one process with the given grant.
func newJudge(grant limits.Grant) (*guard, *meter) {
	over := make(chan struct{})
	close(over)
	m := &meter{process: &process{ctx: context.Background()}}
	return &guard{job: &job{grant: grant, done: over}, meters: []*meter{m}}, m
}

// TestProcessAtItsDiskLimitContinues checks that a process exactly at its disk limit continues until more is
// written.
func TestProcessAtItsDiskLimitContinues(t *testing.T) {
	const most = 1 << 20
	for used, want := range map[int64]int64{0: most, most - 1: leastRoom, most: leastRoom, most + 1: -1} {
		for name, grant := range map[string]limits.Grant{
			"slot": {Slot: limits.Limits{Disk: most}}, "job": {Job: limits.Limits{Disk: most}},
		} {
			g, m := newJudge(grant)
			m.setDisk(disk{nameless: used})
			if got := g.enforce(); got != want || m.over {
				t.Errorf("%s: %d are used, and %d left, want %d; is over: %v", name, used, got, want, m.over)
			}
			m.setDisk(disk{nameless: used})
			if g.enforce(); m.over != (used > most) {
				t.Errorf("%s: %d used: over is %v", name, used, m.over)
			}
		}
	}
}

// TestProcessTwiceAboveItsDiskLimitIsEnded checks that a process is ended if two measurements in a row find it
// above its disk limit: in one of them, a file that was moved may have counted twice.
func TestProcessTwiceAboveItsDiskLimitIsEnded(t *testing.T) {
	const most, more = 1 << 20, 2 << 20
	for name, c := range map[string]struct {
		found []int64
		over  bool
	}{
		"never":           {[]int64{most, most}, false},
		"once":            {[]int64{more}, false},
		"twice":           {[]int64{more, more}, true},
		"not in a row":    {[]int64{more, most, more}, false},
		"twice in a row":  {[]int64{more, most, more, more}, true},
		"then below":      {[]int64{more, most, most}, false},
		"more, then less": {[]int64{2 * more, more}, true},
	} {
		for of, grant := range map[string]limits.Grant{
			"slot": {Slot: limits.Limits{Disk: most}}, "job": {Job: limits.Limits{Disk: most}},
		} {
			g, m := newJudge(grant)
			for _, bytes := range c.found {
				m.setDisk(disk{nameless: bytes})
				g.enforce()
			}
			if m.over != c.over {
				t.Errorf("%s, limit of a %s: is over: %v, want %v", name, of, m.over, c.over)
			}
		}
	}
}

// TestReplacedFilesDoNotEndAProcess checks that a process is not ended for files that only one of two measurements
// has found, although each measurement exceeds the limit.
func TestReplacedFilesDoNotEndAProcess(t *testing.T) {
	const most, step = 1 << 20, 3 << 18
	folder := t.TempDir()
	for _, replaces := range []bool{true, false} {
		g, m := newJudge(limits.Grant{Slot: limits.Limits{Disk: most}})
		for n := range 2 {
			for i := range 2 { // as if the second had replaced the first during the measurement
				name := filepath.Join(folder, fmt.Sprint(i))
				if replaces {
					name = filepath.Join(folder, fmt.Sprint("step-", 2*n+i))
				}
				if err := os.WriteFile(name, make([]byte, step), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := scratch.Survey(folder, scratch.Ruler{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"step-0", "step-1"} { // their identities remain in use
				path := filepath.Join(folder, name)
				if err := os.Rename(path, filepath.Join(t.TempDir(), name)); replaces && n == 0 && err != nil {
					t.Fatal(err)
				}
			}
			m.setDisk(disk{named: found})
			if g.enforce(); m.usage.Disk <= most {
				t.Errorf("measured %d bytes, want more than the limit", m.usage.Disk)
			}
		}
		if m.over == replaces {
			t.Errorf("replaces its files: %v, is over: %v", replaces, m.over)
		}
		for _, name := range []string{"step-2", "step-3"} {
			os.Remove(filepath.Join(folder, name))
		}
	}
}

// TestF2ManyFilesDoNotDelayTheFailureReport checks that many files do not delay the report of a process's
// failure: their measurement is cut short.
func TestF2ManyFilesDoNotDelayTheFailureReport(t *testing.T) {
	skip.Long(t)
	j := newTestJob(t, 1, 1, nil, "wait")
	j.prepare()
	p := j.hosted(0).here.local[view.Process{}]
	folder := p.job.folder.Process(p.id)
	const names = 5000
	for i := range names {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now, looks := time.Unix(1000, 0), 0
	r := p.finalRuler(func() time.Time {
		if looks++; looks > 1 { // as if some names took that long
			now = now.Add(finalMeasureTimeout)
		}
		return now
	})
	r.Least, r.Most = 1<<12, 0
	found, err := scratch.Measure(folder, r)
	if !errors.Is(err, errFinalMeasureTimeout) || found <= 0 || found >= names*r.Least/2 {
		t.Errorf("measured %d names: %v", found/r.Least, err)
	}
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.gone()
}
