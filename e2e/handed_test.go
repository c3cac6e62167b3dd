package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// handTo hands a job to the p2pboot of a home, and returns once the job runs and can be resumed.
func handTo(t *testing.T, own *peerProcess, args ...string) *job {
	t.Helper()
	j := submit(t, own.home, append([]string{"-w", "60", "--timeout", "110s"}, args...)...)
	j.waitFor("the kept event", func(e event) bool { return e.Event == "kept" })
	return j
}

// again boots a p2pboot on the home of a killed one.
func (p *peerProcess) again(supernode *peerProcess) *peerProcess {
	p.t.Helper()
	return bootAt(p.t, p.home, "--slots", "0", "--supernode", supernode.addr)
}

// expectInOrder checks the combined output of several consecutive p2pruns: each rank's lines must be as wanted.
// A p2prun may repeat the last lines of a killed one, if the killed one had not acknowledged them. expectInOrder
// returns the number of repeated lines.
func expectInOrder(t *testing.T, want []string, jobs ...*job) (twice int) {
	t.Helper()
	wanted, next := nemesis.ByRank(joinLines(want)), make(map[string]int)
	for _, j := range jobs {
		for rank, lines := range nemesis.ByRank(j.stdout.String()) {
			at := slices.Index(wanted[rank], lines[0])
			if at < 0 || at > next[rank] { // earlier lines may be repeated
				t.Fatalf("p2prun printed %q after %d lines", lines[0], next[rank])
			}
			twice += next[rank] - at
			for _, line := range lines {
				if at == len(wanted[rank]) || wanted[rank][at] != line {
					t.Fatalf("p2prun printed %q after %d lines", line, at)
				}
				at++
			}
			next[rank] = at
		}
	}
	for rank, lines := range wanted {
		if next[rank] != len(lines) {
			t.Fatalf("%d lines of rank %s, want %d", next[rank], rank, len(lines))
		}
	}
	return twice
}

// A handing is a job that was handed to a p2pboot, with the p2pruns that have followed it.
type handing struct {
	own  *peerProcess
	jobs []*job
}

// kill kills the processes that which names: "p2prun", "p2pboot" or "both".
func (h *handing) kill(which string) {
	if which != "p2prun" {
		h.own.kill()
	}
	if which != "p2pboot" {
		h.last().kill()
	}
}

// restart restarts the processes that kill has killed.
func (h *handing) restart(which string, supernode *peerProcess) {
	h.own.t.Helper()
	if which != "p2prun" {
		h.own = h.own.again(supernode)
	}
	if which != "p2pboot" {
		h.jobs = append(h.jobs, attachWhenFree(h.own.t, h.own))
	}
}

// last returns the p2prun that follows the job now.
func (h *handing) last() *job { return h.jobs[len(h.jobs)-1] }

// TestAttachHanded kills p2prun, the p2pboot to which it has handed its job, or both, and resumes
// the job. TestR6AttachHandedDuringAFlood does that while the job runs.
func TestAttachHanded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps int
		kill  string
		begin bool // kill at the start of the job
		over  bool // resume when the job's processes have ended
	}{
		"the job begins":                           {steps: 100, kill: "p2prun", begin: true},
		"the job is over":                          {steps: 250, kill: "p2prun", over: true},
		"p2pboot too as the job begins":            {steps: 100, kill: "both", begin: true},
		"p2pboot too and the job is over":          {steps: 250, kill: "both", over: true},
		"p2pboot, p2prun waits":                    {steps: 400, kill: "p2pboot"},
		"p2pboot, p2prun waits as the job is over": {steps: 250, kill: "p2pboot", over: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
			h := &handing{own, []*job{handTo(t, own, stepperArgs(3, c.steps)...)}}
			if !c.begin {
				h.last().printed("rank 1 step 100 ")
			}
			h.kill(c.kill)
			if c.over {
				for _, p := range peers {
					eventually(t, "slots", p.unused)
				}
			}
			if c.kill == "both" {
				if early := attach(t, own.home); early.wait() != 69 || !strings.Contains(early.stderr.String(), "which has ended") {
					t.Errorf("attach without a p2pboot: exit status %d, want 69", early.status)
				}
			}
			h.restart(c.kill, peers[0])
			h.expectOver(peers, stepperOutput(3, c.steps, 50))
		})
	}
}

// expectOver expects that the job succeeds with the wanted output, and leaves nothing behind.
func (h *handing) expectOver(peers []*peerProcess, want []string) {
	t := h.own.t
	t.Helper()
	if s := h.last().wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	t.Logf("%d lines were printed twice", expectInOrder(t, want, h.jobs...))
	expectNothingLeft(t, peers)
	eventually(t, "the folder of jobs", h.own.noJobs)
	if again := attach(t, h.own.home); again.wait() != 64 {
		t.Errorf("attach to the finished job: exit status %d, want 64", again.status)
	}
}

// noJobs returns an error if the home still contains jobs.
func (p *peerProcess) noJobs() error {
	left, err := os.ReadDir(filepath.Join(p.home, "jobs"))
	if len(left) > 0 {
		return fmt.Errorf("the folder of kept jobs contains %v", left)
	}
	return err
}

// unattached returns an error while a p2prun follows a job that was handed to the peer.
func (p *peerProcess) unattached() error {
	s, err := p.status()
	for _, j := range s.Submitted {
		if j.Unheard.IsZero() {
			err = errors.New("a p2prun is attached")
		}
	}
	return err
}

// attachWhenFree attaches to the only job of a home once its p2pboot knows that no p2prun follows the job.
func attachWhenFree(t *testing.T, own *peerProcess, args ...string) *job {
	t.Helper()
	eventually(t, "a job without an attached p2prun", own.unattached)
	return attach(t, own.home, args...)
}

// TestS4AttachHandedCancel ends handed jobs in several ways. Ctrl-C ends the p2prun that has handed
// in the job, or one that has attached. Another job is cancelled with --cancel, and one times out
// because no p2prun attaches.
func TestS4AttachHandedCancel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"Ctrl-C": 130, "Ctrl-C in a second p2prun": 130, "--cancel": 130, "no p2prun attaches": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
			j := handTo(t, own, append([]string{"--away", "3s"}, stepperArgs(2, 1000000)...)...)
			j.printed("rank 1 step 50 ")
			if taken := attach(t, own.home); taken.wait() != 64 {
				t.Errorf("second attach at the same time: exit status %d, want 64", taken.status)
			}
			switch name {
			case "Ctrl-C":
				j.cmd.Process.Signal(syscall.SIGINT)
			case "Ctrl-C in a second p2prun":
				j.kill()
				j = attachWhenFree(t, own)
				j.printed("rank 1 step")
				j.cmd.Process.Signal(syscall.SIGINT)
			case "--cancel":
				j.kill()
				j = attachWhenFree(t, own, "--cancel")
			case "no p2prun attaches":
				j.kill()
			}
			begun := time.Now()
			if s := j.wait(); s != want {
				t.Errorf("exit status %d, want %d", s, want)
			}
			expectNothingLeft(t, peers)
			t.Logf("nothing was left after %v", time.Since(begun))
			eventually(t, "the folder of jobs", own.noJobs)
		})
	}
}

// TestR6AttachHandedDuringAFlood kills p2prun several times while the job prints much. Then it kills p2pboot
// too, and finally only p2pboot. The remaining p2prun must handle much output before the next p2pboot is ready.
func TestR6AttachHandedDuringAFlood(t *testing.T) {
	t.Parallel()
	const lines = 150000
	peers := grid(t, 4, "--slots", "1")
	own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
	h := &handing{own, []*job{handTo(t, own, "-n", "2", "-r", "2", filepath.Join(bin, "rude"),
		"init", fmt.Sprintf("lines=%d", lines), "barrier", "finalize")}}
	for _, which := range []string{"p2prun", "p2prun", "both", "p2pboot"} {
		h.last().awaitOutput(400 << 10)
		h.kill(which)
		h.restart(which, peers[0])
	}
	h.expectOver(peers, floodOutput(2, lines))
}

// TestAttachHandedReportsTheExitStatus kills p2prun before the program ends with different statuses, and
// collects the job's files.
func TestAttachHandedReportsTheExitStatus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"-exit": 5, "-write": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
			how := []string{name, "5"}
			if want == 0 {
				how[1] = "sum.txt"
			}
			first := handTo(t, own, slices.Concat([]string{"-n", "2", "-r", "2", "-o", "*.txt", filepath.Join(bin, "stepper")},
				how, []string{"-steps", "200", "-work", "0", "-pause", "20ms"})...)
			first.expectResult(peers, want, func() *job { return attachWhenFree(t, own) })
		})
	}
}

// TestHandedJobHeals kills p2prun and removes the program that it had built; the job must still
// replace a lost replica.
func TestHandedJobHeals(t *testing.T) {
	t.Parallel()
	peers := grid(t, 5, "--slots", "1")
	own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
	built := filepath.Join(t.TempDir(), "built")
	content, err := os.ReadFile(filepath.Join(bin, "stepper"))
	if err == nil {
		err = os.WriteFile(built, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := handTo(t, own, "-n", "2", "-r", "2", built, "-steps", "400", "-every", "50", "-work", "0", "-pause", "20ms")
	first.printed("rank 1 step 50 ")
	first.kill()
	if err := os.Remove(built); err != nil {
		t.Fatal(err)
	}
	first.peerOf(peers, "1.0").kill()
	second := attachWhenFree(t, own)
	second.waitRunning() // the second p2prun receives the placement
	process, took := second.awaitHealed(1)
	t.Logf("%s replaced 1.0 after %v", process, took)
	if s := second.wait(); s != 0 {
		t.Errorf("exit status %d", s)
	}
	expectInOrder(t, stepperOutput(2, 400, 50), first, second)
	expectNothingLeft(t, peers)
}

// TestO2HaltCancelsHandedJobs halts a peer with handed jobs, with and without an attached p2prun. The jobs end,
// and the peer keeps nothing of them.
func TestO2HaltCancelsHandedJobs(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", "--now"} {
		t.Run("p2phalt "+how, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
			j := handTo(t, own, stepperArgs(2, 1000000)...)
			j.printed("rank 1 step 50 ")
			j.kill()
			eventually(t, "a job without an attached p2prun", own.unattached)
			args := append([]string{"--home", own.home}, strings.Fields(how)...)
			if out, err := exec.Command(filepath.Join(bin, "p2phalt"), args...).CombinedOutput(); err != nil {
				t.Fatalf("p2phalt: %v\n%s", err, out)
			}
			expectNothingLeft(t, peers)
			if err := own.noJobs(); err != nil {
				t.Error(err)
			}
		})
	}
}
