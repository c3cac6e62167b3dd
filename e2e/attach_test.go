package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keep submits a steady job from a home, and returns once the job runs and can be resumed.
func keep(t *testing.T, home string, peers []*peerProcess, args ...string) *job {
	t.Helper()
	args = append([]string{"--supernode", peers[0].addr, "-w", "60", "--timeout", "110s"}, args...)
	j := submit(t, home, args...)
	j.waitFor("the kept event", func(e event) bool { return e.Event == "kept" })
	return j
}

// attach resumes the only job of a home.
func attach(t *testing.T, home string, args ...string) *job {
	t.Helper()
	return startJob(t, append([]string{"--home", home, "--json", "--attach"}, args...)...)
}

// kill kills p2prun with SIGKILL, as the kernel does when memory is short.
func (j *job) kill() {
	j.cmd.Process.Kill()
	<-j.ended
}

// stepperArgs are the arguments of a steady job of n ranks with two replicas each.
func stepperArgs(n, steps int) []string { return pacedArgs(n, steps, "20ms") }

func pacedArgs(n, steps int, pause string) []string {
	return []string{"-n", fmt.Sprint(n), "-r", "2", filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "50", "-work", "0", "-pause", pause}
}

// awaitOutput waits until the program has printed size more bytes, while p2prun runs.
func (j *job) awaitOutput(size int) {
	j.t.Helper()
	before := len(j.stdout.String())
	eventually(j.t, "output", func() error {
		select {
		case <-j.ended:
			j.t.Fatalf("p2prun ended too soon: exit status %d", j.status)
		default:
		}
		if len(j.stdout.String())-before < size {
			return errors.New("too little output")
		}
		return nil
	})
}

// expectWhole is like expectInOrder. In addition, it expects that at most the last line of each
// killed p2prun is repeated.
func expectWhole(t *testing.T, want []string, jobs ...*job) {
	t.Helper()
	twice := expectInOrder(t, want, jobs...)
	if twice >= len(jobs) {
		t.Errorf("%d lines were printed twice, but %d p2pruns were killed", twice, len(jobs)-1)
	}
	t.Logf("%d lines were printed twice", twice)
}

// TestAttach kills p2prun and resumes its job: at the start of the job, during the job, and after the end of the
// job, the latter also with a lost peer.
func TestAttach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps int
		begin bool // kill p2prun before all processes may leave mpj.Init
		over  bool
		kill  bool // kill a peer as well
	}{
		"the job begins":                      {steps: 100, begin: true},
		"the job still runs":                  {steps: 500},
		"the job is over":                     {steps: 250, over: true},
		"the job has lost a peer and is over": {steps: 250, over: true, kill: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			home := t.TempDir()
			first := keep(t, home, peers, stepperArgs(3, c.steps)...)
			if !c.begin {
				first.printed("rank 1 step 100 ")
			}
			first.kill()
			if c.kill {
				first.peerOf(peers, "1.0").kill()
			}
			if c.over {
				for _, p := range peers {
					if p.alive() {
						eventually(t, "slots", p.unused)
					}
				}
			}
			begun := time.Now()
			second := attach(t, home)
			if s := second.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			t.Logf("the job ended %v after it was resumed", time.Since(begun))
			expectWhole(t, stepperOutput(3, c.steps, 50), first, second)
			expectNothingLeft(t, peers)
			if again := attach(t, home); again.wait() != 64 {
				t.Errorf("attach to the finished job: exit status %d, want 64", again.status)
			}
		})
	}
}

// TestAttachTooLate resumes a job whose peers have waited for too long. Nothing of the job is left,
// and p2prun reports that.
func TestAttachTooLate(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "1")
	home := t.TempDir()
	first := keep(t, home, peers, append([]string{"--away", "1s"}, stepperArgs(2, 1000000)...)...)
	first.printed("rank 1 step 50 ")
	first.kill()
	killed := time.Now()
	expectNothingLeft(t, peers) // S4
	t.Logf("nothing was left %v after p2prun was killed", time.Since(killed))
	late := attach(t, home)
	if s := late.wait(); s != 70 || !strings.Contains(late.stderr.String(), "nothing of job") {
		t.Errorf("exit status %d", s)
	}
}

// TestAttachCancel cancels jobs whose p2prun was killed, with --cancel and by Ctrl-C.
func TestAttachCancel(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"at once": {"--cancel"}, "while it is followed": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			home := t.TempDir()
			first := keep(t, home, peers, stepperArgs(2, 1000000)...)
			first.printed("rank 1 step 50 ")
			if taken := attach(t, home); taken.wait() != 64 {
				t.Errorf("second attach at the same time: exit status %d, want 64", taken.status)
			}
			first.kill()
			second := attach(t, home, args...)
			if args == nil {
				second.printed("rank 1 step")
				if third := attach(t, home); third.wait() != 64 {
					t.Errorf("second attach at the same time: exit status %d, want 64", third.status)
				}
				second.cmd.Process.Signal(syscall.SIGINT)
			}
			if s := second.wait(); s != 130 {
				t.Errorf("exit status %d, want 130", s)
			}
			expectNothingLeft(t, peers)
			if again := attach(t, home); again.wait() != 64 {
				t.Errorf("attach to the finished job: exit status %d, want 64", again.status)
			}
		})
	}
}

// TestAttachReportsTheExitStatus kills p2prun before the program ends with different statuses.
func TestAttachReportsTheExitStatus(t *testing.T) {
	t.Parallel()
	stepper := func(how string) []string {
		return []string{filepath.Join(bin, "stepper"), how, "5", "-steps", "200", "-work", "0", "-pause", "20ms"}
	}
	for name, program := range map[string][]string{
		"exit":              stepper("-exit"),
		"abort":             stepper("-abort"),
		"exit of rank 1":    {filepath.Join(bin, "rude"), "init", "say=rank 1 step", "sleep=3s", "only=1", "exit=5", "barrier", "finalize"},
		"files are written": {filepath.Join(bin, "stepper"), "-steps", "100", "-work", "0", "-pause", "20ms", "-write", "sum.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			home := t.TempDir()
			first := keep(t, home, peers, append([]string{"-n", "2", "-r", "2", "-o", "*.txt"}, program...)...)
			want := 5
			if name == "files are written" {
				want = 0
			}
			first.expectResult(peers, want, func() *job { return attach(t, home) })
		})
	}
}

// expectResult kills p2prun, and attaches again when the processes have ended. It expects that the resumed
// p2prun reports the exit status and, for a successful job, collects the files.
func (j *job) expectResult(peers []*peerProcess, status int, attach func() *job) {
	t := j.t
	t.Helper()
	j.printed("rank 1 step")
	j.kill()
	for _, p := range peers {
		eventually(t, "slots", p.unused)
	}
	if s := attach().wait(); s != status {
		t.Errorf("exit status %d, want %d", s, status)
	}
	for rank := range 2 {
		_, err := os.Stat(filepath.Join(j.results(), fmt.Sprintf("rank%d", rank), "sum.txt"))
		if (err == nil) != (status == 0) {
			t.Errorf("file of rank %d: %v", rank, err)
		}
	}
	expectNothingLeft(t, peers)
}

// results returns the directory that contains the job's collected files.
func (j *job) results() string {
	found, err := filepath.Glob(filepath.Join(j.cmd.Dir, "results-*"))
	if err != nil || len(found) != 1 {
		return filepath.Join(j.cmd.Dir, "no-results")
	}
	return found[0]
}

// TestR6AttachDuringAFlood kills p2prun several times while the job prints much. No line may be
// missing, and each kill may repeat at most one line, the last.
func TestR6AttachDuringAFlood(t *testing.T) {
	t.Parallel()
	const lines, kills = 60000, 4
	peers := grid(t, 4, "--slots", "1")
	home := t.TempDir()
	jobs := []*job{keep(t, home, peers, "-n", "2", "-r", "2", filepath.Join(bin, "rude"),
		"init", fmt.Sprintf("lines=%d", lines), "barrier", "finalize")}
	for range kills {
		j := jobs[len(jobs)-1]
		j.awaitOutput(400 << 10)
		j.kill()
		jobs = append(jobs, attach(t, home))
	}
	if s := jobs[kills].wait(); s != 0 {
		t.Errorf("exit status %d", s)
	}
	expectWhole(t, floodOutput(2, lines), jobs...)
	expectNothingLeft(t, peers)
}

// TestAttachKnowsRecruits kills p2prun when none of a rank's first processes is left. One of the two
// replacements runs on a peer that ran one of the first processes.
func TestAttachKnowsRecruits(t *testing.T) {
	t.Parallel()
	const steps = 600
	peers := grid(t, 5, "--slots", "1")
	home := t.TempDir()
	first := keep(t, home, peers, pacedArgs(2, steps, "50ms")...)
	first.printed("rank 1 step 50 ")
	for _, victim := range []string{"1.0", "1.1"} {
		killProcess(t, first.peerOf(peers, victim), victim, syscall.SIGKILL)
		recruit, took := first.awaitHealed(1)
		t.Logf("%s replaced %s after %v", recruit, victim, took.Round(time.Millisecond))
	}
	first.kill()
	second := attach(t, home)
	if s := second.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectWhole(t, stepperOutput(2, steps, 50), first, second)
	if strings.Contains(second.stderr.String(), "its peer is unknown") {
		t.Error("the resumed p2prun does not know all peers of its job")
	}
	expectNothingLeft(t, peers)
}

// TestHealsWhenAttached kills the submitter of a job, resumes the job, and kills a peer. Another
// peer must replace it. Then the same happens once more to the same rank. The files for the new
// peers must have been kept, because everything else ended with the killed p2prun.
func TestHealsWhenAttached(t *testing.T) {
	t.Parallel()
	const steps = 1250
	args := []string{"-n", "2", "-r", "2", filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "10", "-work", "0s", "-pause", "20ms", "-pacer"}
	for name, handed := range map[string]bool{"p2prun": false, "p2pboot": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			home := t.TempDir()
			var own *peerProcess
			var jobs []*job
			if handed {
				own = boot(t, "--slots", "0", "--supernode", peers[0].addr)
				jobs = []*job{handTo(t, own, args...)}
			} else {
				jobs = []*job{keep(t, home, peers, args...)}
			}
			j := jobs[0]
			j.printed("rank 1 step 10 ")
			for _, victim := range []string{"1.1", "1.0"} {
				if handed {
					own.kill()
					own = own.again(peers[0])
				} else {
					j.kill()
					j = attach(t, home)
					jobs = append(jobs, j)
				}
				j.waitFor("placement", func(e event) bool { return e.Event == "placed" })
				j.peerOf(peers, victim).kill()
				process, took := j.awaitHealed(1)
				t.Logf("%s replaced %s after %v", process, victim, took.Round(time.Millisecond))
			}
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectInOrder(t, stepperOutput(2, steps, 10), jobs...)
			expectNothingLeft(t, peers)
		})
	}
}
