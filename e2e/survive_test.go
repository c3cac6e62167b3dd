package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepperOutput returns the output of stepper with n ranks. The lines of each rank are in order,
// and those of different ranks may be interleaved.
func stepperOutput(n, steps, every int) []string {
	var out []string
	sum := 0
	for step := range steps {
		for rank := range n {
			sum += step*n + rank
		}
		if (step+1)%every == 0 {
			for rank := range n {
				out = append(out, fmt.Sprintf("rank %d step %d sum %d", rank, step+1, sum))
			}
		}
	}
	return out
}

// expectStepper compares a job's output with the known answer: every line exactly once, none torn,
// those of each rank in order.
func expectStepper(t *testing.T, j *job, n, steps, every int) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(j.stdout.String(), "\n"), "\n")
	perRank := func(lines []string) []string {
		sorted := slices.Clone(lines)
		slices.SortStableFunc(sorted, func(a, b string) int {
			return strings.Compare(strings.SplitN(a, " step", 2)[0], strings.SplitN(b, " step", 2)[0])
		})
		return sorted
	}
	want := perRank(stepperOutput(n, steps, every))
	if !slices.Equal(perRank(got), want) {
		t.Errorf("output:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// printed waits until the program has printed this text.
func (j *job) printed(text string) {
	j.t.Helper()
	eventually(j.t, "output "+text, func() error {
		if !strings.Contains(j.stdout.String(), text) {
			return errors.New("not printed")
		}
		return nil
	})
}

// A loss is a failure that a test causes in a running job.
type loss struct {
	name string
	lose func(t *testing.T, j *job, peers []*peerProcess)
}

// losses are the losses that a job must survive. The job has two ranks or more, each with two
// replicas, on six peers.
var losses = []loss{
	{"nothing", func(*testing.T, *job, []*peerProcess) {}},
	{"the peer of a master killed", func(_ *testing.T, j *job, peers []*peerProcess) {
		j.peerOf(peers, "0.0").kill()
	}},
	{"the peer of a replica killed", func(_ *testing.T, j *job, peers []*peerProcess) {
		j.peerOf(peers, "1.1").kill()
	}},
	{"the process of a master alone killed", func(t *testing.T, j *job, peers []*peerProcess) {
		killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	}},
	{"the process of a master alone stopped", func(t *testing.T, j *job, peers []*peerProcess) {
		killProcess(t, j.peerOf(peers, "2.0"), "2.0", syscall.SIGSTOP)
	}},
	{"two peers of different ranks killed", func(_ *testing.T, j *job, peers []*peerProcess) {
		j.peerOf(peers, "0.0").kill()
		j.peerOf(peers, "2.1").kill()
	}},
	{"the peer of a master stopped permanently", func(_ *testing.T, j *job, peers []*peerProcess) {
		j.peerOf(peers, "0.0").signal(syscall.SIGSTOP)
	}},
}

// TestSurvives runs a program of three ranks with two replicas each on six peers whose supernode has ended. A
// loss occurs while the program runs. The test expects the same answer, printed once, and nothing left behind.
func TestSurvives(t *testing.T) {
	t.Parallel()
	const steps = 600 // longer than a silent peer is tolerated, because a process with all answers does not wait for others
	for _, c := range losses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s",
				filepath.Join(bin, "stepper"), "-steps", fmt.Sprint(steps), "-every", "20", "-work", "1ms", "-pause", "10ms")
			j.waitRunning()
			j.printed("rank 1 step 100 ")
			lost := time.Now()
			c.lose(t, j, peers)
			if c.name != "nothing" {
				j.waitFor("failure in the view", func(e event) bool { return e.Event == "view" && strings.Contains(e.Text, "replica") })
				t.Logf("the view contained the loss after %v", time.Since(lost).Round(time.Millisecond))
			}
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 3, steps, 20)
			wake(peers)
			expectNothingLeft(t, peers)
		})
	}
}

func killProcess(t *testing.T, p *peerProcess, process string, s syscall.Signal) {
	t.Helper()
	var pid int
	eventually(t, "process "+process+" on peer "+p.id, func() error {
		var ok bool
		if pid, ok = p.rankProcess(process); !ok {
			return errors.New("not running")
		}
		return nil
	})
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestR7BothReplicasKilled kills all replicas of a rank.
func TestR7BothReplicasKilled(t *testing.T) {
	t.Parallel()
	peers := grid(t, 6, "--slots", "1")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "stepper"), "-steps", "100000")
	j.waitRunning()
	j.printed("step 10 ")
	j.peerOf(peers, "1.0").kill()
	j.peerOf(peers, "1.1").kill()
	if s := j.wait(); s != 70 {
		t.Errorf("exit status %d, want 70", s)
	}
	if text := j.stderr.String(); !strings.Contains(text, "rank 1 lost all its replicas") {
		t.Errorf("the rank is not named in:\n%s", text)
	}
	expectNothingLeft(t, peers)
}

// TestS4SubmitterKilled kills p2prun, once as a client of a peer and once as a submit-only peer,
// with jobs that cannot continue without it. TestAttach and TestAttachHanded test jobs that can.
func TestS4SubmitterKilled(t *testing.T) {
	t.Parallel()
	peers := grid(t, 3, "--slots", "2")
	for name, args := range map[string][]string{
		"client of a peer": {"--home", peers[0].home, "--away", "0"},
		"submit-only peer": {"--home", t.TempDir(), "--supernode", peers[0].addr, "--away", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			args = append(args, "--json", "-n", "3", "-r", "2", "-w", "60", filepath.Join(bin, "stepper"), "-steps", "100000")
			j := startJob(t, args...)
			j.waitRunning()
			j.printed("step 10 ")
			j.cmd.Process.Kill()
			<-j.ended
			expectNothingLeft(t, peers)
		})
	}
}

// wake resumes stopped peers, so that they learn of all events since.
func wake(peers []*peerProcess) {
	for _, p := range peers {
		p.signal(syscall.SIGCONT)
	}
}

// TestCollectsOutputFiles collects the file of each rank once.
func TestCollectsOutputFiles(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "1")
	j := submit(t, peers[0].home, "-n", "2", "-r", "2", "-w", "60", "-o", "*.txt", filepath.Join(bin, "stepper"), "-steps", "20", "-write", "sum.txt")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	for rank := range 2 {
		got, err := os.ReadFile(filepath.Join(j.results(), fmt.Sprintf("rank%d", rank), "sum.txt"))
		want := fmt.Sprintf("rank %d sum %d\n", rank, 40*39/2)
		if err != nil || string(got) != want {
			t.Errorf("rank %d: %q, %v; want %q", rank, got, err, want)
		}
	}
	if said := j.stderr.String(); strings.Contains(said, "same files") || strings.Contains(said, "diverged") {
		t.Errorf("equal replicas are reported as diverged:\n%s", said)
	}
	expectNothingLeft(t, peers)
}
