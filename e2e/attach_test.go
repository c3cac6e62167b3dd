package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keep submits a steady job from a home, and returns once it has begun and can be gone on
// with.
func keep(t *testing.T, home string, peers []*peerProcess, args ...string) *job {
	t.Helper()
	args = append([]string{"--supernode", peers[0].addr, "-w", "60", "--timeout", "110s"}, args...)
	j := submit(t, home, args...)
	j.waitFor("that it is kept", func(e event) bool { return e.Event == "kept" })
	return j
}

// attach goes on with the only job of a home.
func attach(t *testing.T, home string, args ...string) *job {
	t.Helper()
	return startJob(t, append([]string{"--home", home, "--json", "--attach"}, args...)...)
}

// kill ends p2prun as the kernel does when memory is short.
func (j *job) kill() {
	j.cmd.Process.Kill()
	<-j.ended
}

// stepperArgs is a steady job of three ranks twice over.
func stepperArgs(steps string) []string {
	return []string{"-n", "3", "-r", "2", filepath.Join(bin, "stepper"), "-steps", steps, "-every", "50", "-work", "0", "-pause", "20ms"}
}

// expectWhole expects that what several p2pruns have printed one after the other is the
// right output. The last line of one that was killed may be there once more.
func expectWhole(t *testing.T, steps int, jobs ...*job) {
	t.Helper()
	whole := &job{t: t, stdout: &lockedBuffer{}}
	last := ""
	for _, j := range jobs {
		text := j.stdout.String()
		if last != "" && strings.HasPrefix(text, last) {
			t.Logf("%q came twice", last)
			text = text[len(last):]
		}
		whole.stdout.Write([]byte(text))
		last = text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
	}
	expectStepper(t, whole, 3, steps, 50)
}

// TestAttach kills p2prun and goes on with its job: after a moment, and when the job is
// over meanwhile, also with a peer less.
func TestAttach(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		n     int
		over  bool
		kill  bool
	}{
		"the job still runs":                  {"500", 500, false, false},
		"the job is over":                     {"250", 250, true, false},
		"the job has lost a peer and is over": {"250", 250, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 6, "--slots", "1")
			home := t.TempDir()
			first := keep(t, home, peers, stepperArgs(c.steps)...)
			first.printed("rank 1 step 100 ")
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
			t.Logf("over %v after it was gone on with", time.Since(begun))
			expectWhole(t, c.n, first, second)
			expectNothingLeft(t, peers)
			if again := attach(t, home); again.wait() != 64 {
				t.Errorf("gone on with once more: exit status %d", again.status)
			}
		})
	}
}

// TestAttachTooLate goes on with a job whose peers have waited for long enough: nothing of
// it is left, and whoever comes too late hears so.
func TestAttachTooLate(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "1")
	home := t.TempDir()
	first := keep(t, home, peers, append([]string{"--away", "1s"}, twoRanks("1000000")...)...)
	first.printed("rank 1 step 50 ")
	first.kill()
	killed := time.Now()
	expectNothingLeft(t, peers) // S4
	t.Logf("nothing left %v after p2prun was killed", time.Since(killed))
	late := attach(t, home)
	if s := late.wait(); s != 70 || !strings.Contains(late.stderr.String(), "nothing of job") {
		t.Errorf("exit status %d", s)
	}
}

// TestAttachCancel ends jobs whose p2prun was killed: by asking for no more than that, and
// by Ctrl-C.
func TestAttachCancel(t *testing.T) {
	for name, args := range map[string][]string{"at once": {"--cancel"}, "while it is followed": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 4, "--slots", "1")
			home := t.TempDir()
			first := keep(t, home, peers, twoRanks("1000000")...)
			first.printed("rank 1 step 50 ")
			if taken := attach(t, home); taken.wait() != 64 {
				t.Errorf("gone on with twice at a time: exit status %d", taken.status)
			}
			first.kill()
			second := attach(t, home, args...)
			if args == nil {
				second.printed("rank 1 step")
				if third := attach(t, home); third.wait() != 64 {
					t.Errorf("gone on with twice at a time: exit status %d", third.status)
				}
				second.cmd.Process.Signal(syscall.SIGINT)
			}
			if s := second.wait(); s != 130 {
				t.Errorf("exit status %d, want 130", s)
			}
			expectNothingLeft(t, peers)
			if again := attach(t, home); again.wait() != 64 {
				t.Errorf("gone on with once more: exit status %d", again.status)
			}
		})
	}
}

// twoRanks is a steady job of two ranks twice over.
func twoRanks(steps string) []string {
	return []string{"-n", "2", "-r", "2", filepath.Join(bin, "stepper"), "-steps", steps, "-every", "50", "-work", "0", "-pause", "20ms"}
}
