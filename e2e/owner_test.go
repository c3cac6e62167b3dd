package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer"
)

// TestS3PolicyRefusalIsImmediate has three owners who each refuse a stranger's native program for a
// different reason; the submitter must see all three. One of the owners can still run a job of
// their own, and finds it in the journal after the peer has ended.
func TestS3PolicyRefusalIsImmediate(t *testing.T) {
	t.Parallel()
	first := boot(t, "--slots", "1", "--accept", "wasm")
	second := boot(t, "--slots", "1", "--accept", "none", "--supernode", first.addr)
	third := boot(t, "--slots", "1", "--supernode", first.addr, "--quiet-hours", "00:00-12:00,12:00-00:00")
	stepper := filepath.Join(bin, "stepper")

	refused := submit(t, t.TempDir(), "--supernode", first.addr, "-n", "1", "-w", "3", stepper)
	if s := refused.wait(); s != 69 {
		t.Errorf("a job that all owners refuse ended with status %d, want 69", s)
	}
	for _, why := range []string{"1 wasm only", "1 denied", "1 paused"} {
		if !strings.Contains(refused.stderr.String(), why) {
			t.Errorf("p2prun did not print %q:\n%s", why, refused.stderr)
		}
	}

	eventually(t, "the suspend rule of the peer", func() error {
		out, err := p2pboot("status", "--home", third.home)
		if err == nil && !strings.Contains(out, "suspended: quiet hours") {
			err = fmt.Errorf("no such line in:\n%s", out)
		}
		return err
	})
	own := submit(t, third.home, "--peer", third.id, "-n", "1", "-w", "30", stepper, "-steps", "20", "-every", "10")
	if s := own.wait(); s != 0 {
		t.Errorf("the owner's own job ended with status %d:\n%s", s, own.stderr)
	}
	expectNothingLeft(t, []*peerProcess{first, second, third})
	third.kill()

	out, err := p2pboot("history", "--home", third.home, "--json")
	if err != nil {
		t.Fatalf("p2pboot history: %v", err)
	}
	var past []struct {
		Submitter, Class, Kind, Program, Digest, Until, Ended string
		Processes                                             int
		CPU, Memory, Staged, Output                           int64
	}
	if err := json.Unmarshal([]byte(out), &past); err != nil || len(past) != 1 {
		t.Fatalf("want one job in the history, got error %v and:\n%s", err, out)
	}
	e, least := past[0], int64(0)
	if groups, _ := os.ReadFile(filepath.Join(third.home, "cgroups")); strings.Contains(string(groups), "/cgroup/memory") {
		least = 1 << 20 // on older kernels, version 2 of control groups does not report it
	}
	if e.Submitter != third.id || e.Class != "mine" || e.Kind != "native" || e.Program != "stepper" || len(e.Digest) != 64 || e.Until == "" || e.Ended == "" ||
		e.Processes != 1 || e.CPU <= 0 || e.Memory < least || e.Staged <= 0 || e.Output != int64(len(own.stdout.String())) {
		t.Errorf("the history contains %+v", e)
	}
}

// TestO2OwnersReclaimTheirMachines halts every peer on which a job of two ranks with two replicas
// began. The first two, which may run both replicas of a rank, are halted at the same time. The
// third ends by a signal. The last lends no more slots, but stays. Each machine is free while the
// job still runs, and the job must succeed.
func TestO2OwnersReclaimTheirMachines(t *testing.T) {
	t.Parallel()
	peers := grid(t, 8, "--slots", "1")
	const steps = 500
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	j.printed("rank 1 step 5 ")
	var began []*peerProcess
	for _, process := range []string{"0.0", "0.1", "1.0", "1.1"} {
		if p := j.peerOf(peers, process); !slices.Contains(began, p) {
			began = append(began, p)
		}
	}
	var leaving sync.WaitGroup
	halt := func(p *peerProcess, args ...string) {
		leaving.Go(func() { // ends with p2phalt, which ends with the peer
			if out, err := exec.Command(filepath.Join(bin, "p2phalt"), append(args, "--home", p.home)...).CombinedOutput(); err != nil {
				t.Errorf("p2phalt %v: %v\n%s", args, err, out)
			}
		})
	}
	halt(began[0], "--drain")
	halt(began[1], "--drain")
	leaving.Wait()
	began[2].signal(syscall.SIGTERM) // as the system does at shutdown
	if out, err := exec.Command(filepath.Join(bin, "p2pboot"), "slots", "0", "--home", began[3].home).CombinedOutput(); err != nil {
		t.Errorf("p2pboot slots: %v\n%s", err, out)
	}
	<-began[2].ended
	eventually(t, "the withdrawn slots", func() error {
		s, err := began[3].status()
		if err == nil && (len(s.Hosted) > 0 || s.Slots.Total != 0) {
			err = fmt.Errorf("%d slots, jobs %+v", s.Slots.Total, s.Hosted)
		}
		return err
	})
	select {
	case <-j.ended:
		t.Errorf("the peers were released only after the job had ended")
	default:
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	expectStepper(t, j, 2, steps, 5)
	if n := strings.Count(j.stderr.String(), "left with its peer, whose owner needs the machine"); n < 4 {
		t.Errorf("%d processes have left with their peers, want 4:\n%s", n, j.stderr)
	}
	if out, err := exec.Command(filepath.Join(bin, "p2pboot"), "slots", "1", "--home", began[3].home).CombinedOutput(); err != nil {
		t.Errorf("p2pboot slots: %v\n%s", err, out)
	}
	expectNothingLeft(t, peers)
}

// TestO3OwnerStopsOneJob stops one of two jobs on a peer. Without replicas, the job ends and its
// submitter sees the reason, while the other job continues. With replicas, another peer takes over,
// and nothing of the job is left at the first.
func TestO3OwnerStopsOneJob(t *testing.T) {
	t.Parallel()
	peers := grid(t, 3, "--slots", "2")
	owner := peers[0]
	const steps = 500
	start := func(args ...string) *job {
		args = append([]string{"--supernode", peers[1].addr, "-w", "60", "--timeout", "110s"}, args...)
		j := submit(t, t.TempDir(), append(args, filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")...)
		j.waitRunning()
		j.printed("rank 0 step 5 ")
		return j
	}
	stop := func(p *peerProcess, job, how string) {
		t.Helper()
		if out, err := p2pboot("stop", job[:8], "--home", p.home); err != nil || out != fmt.Sprintf("job %s: %s\n", job[:8], how) {
			t.Errorf("p2pboot stop: %v, prints %q", err, out)
		}
	}

	unwanted := start("-n", "1", "--peer", owner.id)
	id := owner.jobs()[0]
	neighbour := start("-n", "1", "--peer", owner.id)
	stop(owner, id, "ended")
	if s := unwanted.wait(); s != 70 || !strings.Contains(unwanted.stderr.String(), "its owner has stopped the job here") {
		t.Errorf("the job that was stopped: exit status %d:\n%s", s, unwanted.stderr)
	}
	if left := owner.jobs(); len(left) != 1 || left[0] == id {
		t.Errorf("jobs that are left: %q", left)
	}
	if s := neighbour.wait(); s != 0 {
		t.Errorf("the other job: exit status %d:\n%s", s, neighbour.stderr)
	}
	expectStepper(t, neighbour, 1, steps, 5)

	moved := start("-n", "1", "-r", "2")
	began := moved.peerOf(peers, "0.0")
	id = began.jobs()[0]
	stop(began, id, "handed over")
	if left := began.jobs(); len(left) != 0 {
		t.Errorf("jobs that are left: %q", left)
	}
	select {
	case <-moved.ended:
		t.Error("the job left the peer only when it had ended")
	default:
	}
	if s := moved.wait(); s != 0 {
		t.Fatalf("the job that was handed over: exit status %d:\n%s", s, moved.stderr)
	}
	expectStepper(t, moved, 1, steps, 5)
	expectNothingLeft(t, peers)
}

// jobs returns the IDs of the jobs that hold slots of a peer.
func (p *peerProcess) jobs() (ids []string) {
	p.t.Helper()
	out, err := p2pboot("jobs", "--home", p.home, "--json")
	var hosted []struct{ Job string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &hosted)
	}
	if err != nil {
		p.t.Fatalf("p2pboot jobs: %v\n%s", err, out)
	}
	for _, j := range hosted {
		ids = append(ids, j.Job)
	}
	return ids
}

// TestO2HaltOfAPeerWithAJobWithoutReplicas halts a peer with such a job. With --drain, the peer
// ends once the job is done. Otherwise the job ends with the peer, and its submitter sees the
// reason.
func TestO2HaltOfAPeerWithAJobWithoutReplicas(t *testing.T) {
	t.Parallel()
	const steps = 500
	for name, c := range map[string]struct {
		args   []string
		status int
		prints string // output for the owner
		says   string // message for the submitter, if the job does not succeed
	}{
		"drain":   {[]string{"--drain"}, 0, "stepper, 0.0: waited for\n", ""},
		"orderly": {nil, 70, "stepper, 0.0: cancelled\n", "its owner has reclaimed the machine"},
		"now":     {[]string{"--now"}, 70, "stepper, 0.0: cancelled\n", "rank 0 lost all its replicas: replica 0 failed with its peer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := boot(t, "--slots", "1")
			j := submit(t, t.TempDir(), "--supernode", p.addr, "-n", "1", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "5", "-work", "0s", "-pause", "20ms", "-pacer")
			j.waitRunning()
			j.printed("rank 0 step 5 ")
			halted := make(chan error, 1)
			go func() { // ends with p2phalt, which ends with the peer
				out, err := exec.Command(filepath.Join(bin, "p2phalt"), append(c.args, "--home", p.home)...).CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), c.prints) {
					err = fmt.Errorf("p2phalt: %w\n%s", err, out)
				}
				halted <- err
			}()
			if c.status == 0 {
				eventually(t, "a peer that drains", func() error {
					if out, err := p2pboot("status", "--home", p.home); err != nil || !strings.Contains(out, "draining") {
						return fmt.Errorf("p2pboot status does not show that the peer drains: %w:\n%s", err, out)
					}
					return nil
				})
			}
			if s := j.wait(); s != c.status {
				t.Errorf("exit status %d, want %d:\n%s", s, c.status, j.stderr)
			}
			if err := <-halted; err != nil {
				t.Errorf("p2phalt %v: %v", c.args, err)
			}
			<-p.ended
			if text := j.stderr.String(); c.status == 0 {
				expectStepper(t, j, 1, steps, 5)
			} else if !strings.Contains(text, c.says) {
				t.Errorf("the submitter gets:\n%s", text)
			}
			expectNothingLeft(t, []*peerProcess{p})
		})
	}
}

// TestO2QuietHoursHandOver begins an owner's quiet hours, by the clock of their machine, while a
// job runs there. The job's processes must move to other peers, and its result must be right. After
// the quiet hours, the peer takes jobs again.
func TestO2QuietHoursHandOver(t *testing.T) {
	t.Parallel()
	begin := time.Now().UTC().Add(10 * time.Minute)
	hours := begin.Format("15:04") + "-" + begin.Add(20*time.Minute).Format("15:04")
	wall := &machine{
		addr: loopback.addr, env: append(slices.Clone(loopback.env), "TZ=UTC"), boot: loopback.boot,
		clock: filepath.Join(t.TempDir(), "clock"),
	}
	owner := wall.startPeer(t, t.TempDir(), "--slots", "2", "--quiet-hours", hours)
	owner.awaitReady()
	peers := []*peerProcess{owner, boot(t, "--slots", "2", "--supernode", owner.addr)}

	const steps = 1000
	j := submit(t, t.TempDir(), "--supernode", owner.addr, "-n", "2", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "10", "-work", "0s", "-pause", "20ms", "-pacer")
	j.waitRunning()
	j.printed("rank 1 step 10 ")
	peers = append(peers, boot(t, "--slots", "2", "--supernode", owner.addr))
	eventually(t, "the resource use of a job", func() error {
		out, err := p2pboot("jobs", "--home", owner.home, "--json")
		var hosted []struct{ Use struct{ CPU, Memory int64 } }
		if err == nil {
			err = json.Unmarshal([]byte(out), &hosted)
		}
		if err == nil && (len(hosted) != 1 || hosted[0].Use.CPU <= 0 || hosted[0].Use.Memory <= 0) {
			err = fmt.Errorf("p2pboot jobs printed %s", out)
		}
		return err
	})

	mend, ok := wall.stepClock(t, 15*time.Minute)
	if !ok {
		skip.Lacks(t, "root, and a kernel with seccomp's user notification")
	}
	const rule = "suspended: quiet hours"
	eventually(t, "the end of all jobs in quiet hours", func() error {
		out, err := p2pboot("status", "--home", owner.home)
		if err == nil && (!strings.Contains(out, rule) || strings.Contains(out, "hosted job:")) {
			err = fmt.Errorf("no %q, or a job, in:\n%s", rule, out)
		}
		return err
	})
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	expectStepper(t, j, 2, steps, 10)
	if n := strings.Count(j.stderr.String(), "left with its peer, whose owner needs the machine"); n != 2 {
		t.Errorf("%d processes have left with their peer, want 2:\n%s", n, j.stderr)
	}

	mend()
	eventually(t, "the end of the quiet hours", func() error {
		out, err := p2pboot("status", "--home", owner.home)
		if err == nil && strings.Contains(out, "suspended") {
			err = fmt.Errorf("a job is still suspended in:\n%s", out)
		}
		return err
	})
	again := submit(t, t.TempDir(), "--supernode", owner.addr, "--peer", owner.id, "-n", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "20")
	if s := again.wait(); s != 0 {
		t.Errorf("a job at the peer that accepts jobs again: exit status %d:\n%s", s, again.stderr)
	}
	expectNothingLeft(t, peers)
}

// TestO2QuietHoursSuspendJobsThatCannotMigrate begins quiet hours at the peer of a rank without
// replicas. The rank is suspended, for longer than the tolerated hang, and the job's result must be
// right afterwards. If the owner prefers that, the job ends instead.
func TestO2QuietHoursSuspendJobsThatCannotMigrate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs   string // --pause-jobs
		status int
		says   string
	}{
		"wait": {"1h", 0, "needs the machine (quiet hours): the job's processes there are suspended, and end if that lasts longer than 1h0m0s"},
		"end":  {"end", 70, "its owner needs the machine: quiet hours"},
		"soon": {"1s", 70, "its owner needs the machine: quiet hours"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now().UTC().Add(10 * time.Minute)
			hours := begin.Format("15:04") + "-" + begin.Add(20*time.Minute).Format("15:04")
			wall := &machine{
				addr: loopback.addr, env: append(slices.Clone(loopback.env), "TZ=UTC"), boot: loopback.boot,
				clock: filepath.Join(t.TempDir(), "clock"),
			}
			owner := wall.startPeer(t, t.TempDir(), "--slots", "1", "--quiet-hours", hours, "--pause-jobs", c.jobs)
			owner.awaitReady()
			peers := []*peerProcess{owner, boot(t, "--slots", "1", "--supernode", owner.addr)}
			const steps = 500
			j := submit(t, t.TempDir(), "--supernode", owner.addr, "-n", "2", "-w", "60", "--timeout", "200s",
				filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "10", "-work", "0s", "-pause", "20ms", "-pacer")
			j.waitRunning()
			j.printed("rank 1 step 10 ")
			mend, ok := wall.stepClock(t, 15*time.Minute)
			if !ok {
				skip.Lacks(t, "root, and a kernel with seccomp's user notification")
			}
			if c.status == 0 {
				j.waitFor("the suspension by the owner", func(e event) bool { return strings.Contains(e.Text, c.says) })
				eventually(t, "a suspended job", func() error {
					out, err := p2pboot("jobs", "--home", owner.home)
					if err == nil && !strings.Contains(out, "running, suspended") {
						err = fmt.Errorf("p2pboot jobs printed %s", out)
					}
					return err
				})
				mend() // the rule applies for another minute
				j.waitFor("the resumed job", func(e event) bool { return strings.Contains(e.Text, "resumes the job") })
			}
			if s := j.wait(); s != c.status || !strings.Contains(j.stderr.String(), c.says) {
				t.Fatalf("exit status %d:\n%s", s, j.stderr)
			}
			if c.status == 0 {
				expectStepper(t, j, 2, steps, 10)
			}
			expectNothingLeft(t, peers)
		})
	}
}

// TestProgramsYieldByDefault runs a job at the peer of an ordinary user with default settings.
// The programs must have the lowest priority, and so must their session where sessions compete, but
// not that of the peer. The job must succeed.
func TestProgramsYieldByDefault(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux, which has such priorities")
	}
	t.Parallel()
	m := *loopback
	m.user, m.env = ordinary, append(slices.Clone(loopback.env), fmt.Sprintf("P2PMPI_NICENESS=%d", peer.DefaultConfig().Niceness))
	p := m.startPeer(t, folderOf(t, ordinary), "--slots", "2", "--require-confinement=false")
	p.awaitReady()
	j := submit(t, t.TempDir(), "--supernode", p.addr, "-n", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "200", "-every", "10", "-work", "1ms", "-pause", "50ms")
	j.waitRunning()
	pid, ok := p.rankProcess("0.0")
	if !ok {
		t.Fatal("rank 0 has no process")
	}
	if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid); err != nil || raw != 20-19 {
		t.Errorf("the niceness of rank 0 is %d, %v", 20-raw, err)
	}
	groups, _ := os.ReadFile(filepath.Join(p.home, "cgroups"))
	if own, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", p.cmd.Process.Pid)); err == nil && len(groups) == 0 {
		if strings.Contains(string(own), " nice 15") {
			t.Errorf("the session of the peer is %q", own)
		}
		// The priority is not lowered during the start, which may take long on a busy machine.
		eventually(t, "session of programs", func() error {
			programs, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
			if err == nil && !strings.Contains(string(programs), " nice 15") {
				err = fmt.Errorf("the autogroup is %q, want nice 15", programs)
			}
			return err
		})
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	expectStepper(t, j, 2, 200, 10)
	expectNothingLeft(t, []*peerProcess{p})
}

// TestO2PeerRespondsUnderItsOwnersLoad occupies the processors many times over at a peer that cannot create
// control groups. The peer must get processor time nearly as soon as the submitter does. The submitter does not
// know the peer, and must not have failed it when the owner's work is done. The job must succeed.
func TestO2PeerRespondsUnderItsOwnersLoad(t *testing.T) {
	m := *loopback
	m.user, m.env = ordinary, append(slices.Clone(loopback.env), fmt.Sprintf("P2PMPI_NICENESS=%d", peer.DefaultConfig().Niceness))
	p := m.startPeer(t, folderOf(t, ordinary), "--slots", "2", "--require-confinement=false")
	p.awaitReady()
	const need = 15 * time.Second // nearly twice the tolerated silence of a peer
	j := submit(t, t.TempDir(), "--supernode", p.addr, "-n", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-for", need.String(), "-every", "1000", "-work", "1ms")
	j.waitRunning()
	done := compute(t, 17*runtime.NumCPU())
	peers, submitters := turnsOf(p.cmd.Process.Pid), turnsOf(j.cmd.Process.Pid)
	if peers.count == 0 {
		skip.Lacks(t, "a kernel that counts the turns of threads")
	}
	select {
	case <-time.After(need):
	case <-j.ended:
		t.Fatalf("the job did not survive:\n%s", j.stderr)
	}
	late, usual := turnsOf(p.cmd.Process.Pid).wait(peers), turnsOf(j.cmd.Process.Pid).wait(submitters)
	done()
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d:\n%s", s, j.stderr)
	}
	t.Logf("the peer waits %v for a turn, the submitter %v", late, usual)
	if late > 10*max(usual, 100*time.Microsecond) {
		t.Errorf("the peer waits %v for a turn, the submitter %v", late, usual)
	}
	expectNothingLeft(t, []*peerProcess{p})
}

// compute runs n computing processes, as if from an owner's terminals, until done is called.
func compute(t *testing.T, n int) (done func()) {
	t.Helper()
	var all []*exec.Cmd
	done = func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
		all = nil
	}
	t.Cleanup(func() { done() })
	for range n {
		c := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return done
}

// turns counts how often the threads of a process were scheduled, and how long they waited for a processor.
type turns struct {
	waited time.Duration
	count  int64
}

func turnsOf(pid int) (sum turns) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		var ran, waited, count int64 // in nanoseconds
		fmt.Sscan(string(text), &ran, &waited, &count)
		sum.waited, sum.count = sum.waited+time.Duration(waited), sum.count+count
	}
	return sum
}

// wait returns the mean waiting time per turn since before.
func (s turns) wait(before turns) time.Duration {
	return (s.waited - before.waited) / time.Duration(max(1, s.count-before.count))
}

// p2pboot runs one of its subcommands, and returns the output.
func p2pboot(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(bin, "p2pboot"), args...).Output()
	return string(out), err
}
