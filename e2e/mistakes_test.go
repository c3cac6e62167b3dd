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
)

// TestMistakes makes each user error once. It checks the exit status, and that the message is one clear
// sentence. Nothing may be left behind or printed on standard output.
func TestMistakes(t *testing.T) {
	t.Parallel()
	peers := grid(t, 2, "--slots", "2")
	stepper := filepath.Join(bin, "stepper")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	badList := file("badlist", "/nonexistent/input.txt\n")
	notProgram := file("notprogram", "just text")
	broken := file("broken.yaml", "slots: [1\n")
	unknownKey := file("unknown.yaml", "slotz: 3\n")
	notFolder := file("notfolder", "")
	network := []string{"--supernode", peers[0].addr}

	cases := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"unknown program", []string{"-n", "1", "/nonexistent/program"}, 64, "/nonexistent/program"},
		{"file that is not a program", []string{"-n", "1", notProgram}, 64, notProgram},
		{"no program", []string{"-n", "1"}, 64, "PROGRAM"},
		{"unreadable file in the list", []string{"-n", "1", "-l", badList, stepper}, 64, "/nonexistent/input.txt"},
		{"unreadable list", []string{"-n", "1", "-l", "/nonexistent/list", stepper}, 64, "/nonexistent/list"},
		{"n of 0", []string{"-n", "0", stepper}, 64, "-n"},
		{"r of 0", []string{"-n", "1", "-r", "0", stepper}, 64, "-r"},
		{"n missing", []string{stepper}, 64, "-n"},
		{"unknown strategy", []string{"-n", "1", "-a", "everywhere", stepper}, 64, "everywhere"},
		{"unknown strategy", []string{"-n", "1", "-a", "scatter", stepper}, 64, "spread, concentrate, dataspread, dataconcentrate"},
		{"unknown option", []string{"--nonsense", stepper}, 64, "--nonsense"},
		{"more slots than exist", []string{"-n", "8", "-w", "1", stepper}, 69, "of the 8 slots needed"},
		{"more replicas than peers", []string{"-n", "1", "-r", "3", "-w", "1", stepper}, 69, "-r"},
		{"corrupt configuration", []string{"--config", broken, "-n", "1", stepper}, 64, broken},
		{"unknown key in the configuration", []string{"--config", unknownKey, "-n", "1", stepper}, 64, "slotz"},
		{"exits 3", []string{"-n", "2", stepper, "-exit", "3"}, 3, "status 3"},
		{"exits 3 at all replicas", []string{"-n", "2", "-r", "2", stepper, "-exit", "3"}, 3, "status 3"},
		{"panics", []string{"-n", "2", "-r", "2", stepper, "-panic"}, 2, "stepper panics"},
		{"aborts", []string{"-n", "2", stepper, "-abort", "7"}, 7, "stepper aborts"},
		{"never calls Init", []string{"-n", "2", "true"}, 0, "never called mpj.Init"},
		{"missing output files", []string{"-n", "2", "-o", "*.png", stepper, "-steps", "10"}, 0, "matches -o *.png"},
		{"loops forever", []string{"-n", "2", "--timeout", "3s", stepper, "-steps", "1000000000", "-every", "1000000000"}, 75, "--timeout"},
		{"loops forever without Init", []string{"-n", "2", "--timeout", "3s", "sleep", "100000"}, 75, "--timeout"},
		{"Go package that does not compile", []string{"-n", "1", badPackage(t)}, 64, "undefined"},
		{"wasm", []string{"-n", "1", file("x.wasm", "\x00asm")}, 64, "wasm"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"--home", t.TempDir()}, network...)
			j := startJob(t, append(args, c.args...)...)
			if s := j.wait(); s != c.status {
				t.Errorf("exit status %d, want %d", s, c.status)
			}
			if text := j.stderr.String(); !strings.Contains(text, c.says) {
				t.Errorf("the command did not print %q:\n%s", c.says, text)
			}
			if out := j.stdout.String(); strings.TrimSpace(out) != "" && !strings.HasPrefix(out, "rank ") {
				t.Errorf("standard output: %q", out)
			}
			expectNothingLeft(t, peers)
		})
	}
	t.Run("home that cannot be written", func(t *testing.T) {
		expectBootFails(t, 73, notFolder, "--home", filepath.Join(notFolder, "home"))
	})
	t.Run("second boot on one home", func(t *testing.T) {
		expectBootFails(t, 64, "already", "--home", peers[0].home)
	})
	t.Run("boot with a corrupt configuration", func(t *testing.T) {
		expectBootFails(t, 64, broken, "--home", t.TempDir(), "--config", broken)
	})
	t.Run("boot on a port that another peer listens on", func(t *testing.T) {
		listen := strings.SplitAfter(peers[0].addr, "/p2p/")[0]
		expectBootFails(t, 69, "address already in use", "--home", t.TempDir(), "--listen", strings.TrimSuffix(listen, "/p2p/"))
	})
	t.Run("halt without a peer", func(t *testing.T) {
		out, err := exec.Command(filepath.Join(bin, "p2phalt"), "--home", t.TempDir()).CombinedOutput()
		if exitCode(err) != 69 || !strings.Contains(string(out), "no peer") {
			t.Errorf("p2phalt without a peer: %v: %s", err, out)
		}
	})
}

// TestCheckEndsADeadlock sets P2PMPI_CHECK=1 in the environment of p2prun. A job whose ranks wait
// for each other must then end, and report which rank waits for which.
func TestCheckEndsADeadlock(t *testing.T) {
	t.Parallel()
	peers := grid(t, 2, "--slots", "1")
	user := *loopback
	user.env = append(slices.Clone(user.env), "P2PMPI_CHECK=1")
	j := user.startJob(t, "--home", t.TempDir(), "--supernode", peers[0].addr, "-n", "2", filepath.Join(bin, "stepper"), "-stuck", "-steps", "6")
	if s := j.wait(); s != 1 {
		t.Errorf("exit status %d, want 1", s)
	}
	for _, says := range []string{
		"deadlock: no rank can proceed",
		"rank 0 waits in Recv(source 1, tag 9, world): the messages that have arrived have tag 1 from rank 1",
		"rank 1 waits in Recv(source 0, tag 1, world)",
	} {
		if text := j.stderr.String(); !strings.Contains(text, says) {
			t.Errorf("the command did not print %q:\n%s", says, text)
		}
	}
	expectNothingLeft(t, peers)
}

// badPackage returns a Go package, in its own module, that does not compile.
func badPackage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module bad\n\ngo 1.24\n",
		"main.go": "package main\n\nfunc main() { nonsense() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func expectBootFails(t *testing.T, status int, says string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "p2pboot"), args...)
	loopback.prepare(cmd, t.TempDir())
	out, err := cmd.CombinedOutput()
	if exitCode(err) != status || !strings.Contains(string(out), says) {
		t.Errorf("%v, want exit status %d and %q:\n%s", err, status, says, out)
	}
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return -1
}

// TestSupernodeThatDoesNotAnswer uses a supernode that does not answer. A volunteer gets a warning
// and can still donate, and a submitter does not wait forever.
func TestSupernodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	gone := boot(t)
	gone.kill()
	p := boot(t, "--supernode", gone.addr)
	eventually(t, "warning", func() error {
		if log := p.log.String(); !strings.Contains(log, gone.id) {
			return fmt.Errorf("the supernode is not named in:\n%s", log)
		}
		return nil
	})
	j := startJob(t, "--home", t.TempDir(), "--supernode", gone.addr, "-n", "1", "-w", "1", filepath.Join(bin, "stepper"))
	if s := j.wait(); s != 69 {
		t.Errorf("exit status %d, want 69", s)
	}
	if text := j.stderr.String(); !strings.Contains(text, gone.id) {
		t.Errorf("the supernode is not named in:\n%s", text)
	}
}

// TestPeerReturnsAfterKill boots a peer again on the home of a killed one.
func TestPeerReturnsAfterKill(t *testing.T) {
	t.Parallel()
	p := boot(t, "--slots", "1")
	j := submit(t, t.TempDir(), "--supernode", p.addr, "-n", "1", filepath.Join(bin, "stepper"), "-steps", "100000", "-every", "1")
	j.waitRunning()
	j.printed("step 10 ")
	p.kill()
	if s := j.wait(); s != 70 {
		t.Errorf("exit status %d, want 70", s)
	}
	again := bootAt(t, p.home, "--slots", "1")
	if again.id != p.id {
		t.Errorf("peer %s restarted as %s", p.id, again.id)
	}
	expectNothingLeft(t, []*peerProcess{again})
}

// TestHalt halts a peer while a job runs on it; the job must continue.
func TestHalt(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "--now"} {
		t.Run("p2phalt "+mode, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 3, "--slots", "1")
			j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "1", "-r", "2", "-w", "60",
				filepath.Join(bin, "stepper"), "-steps", "300", "-every", "20", "-work", "1ms", "-pause", "5ms")
			j.waitRunning()
			j.printed("step 100 ")
			master := j.peerOf(peers, "0.0")
			args := []string{"--home", master.home}
			if mode != "" {
				args = append(args, mode)
			}
			if out, err := exec.Command(filepath.Join(bin, "p2phalt"), args...).CombinedOutput(); err != nil {
				t.Errorf("p2phalt: %v: %s", err, out)
			}
			if master.alive() {
				<-master.ended
			}
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectStepper(t, j, 1, 300, 20)
			expectNothingLeft(t, peers)
		})
	}
}

// TestInterrupt sends a user's Ctrl-C.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	peers := grid(t, 2, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "100000")
	j.waitRunning()
	j.printed("step 10 ")
	j.cmd.Process.Signal(syscall.SIGINT)
	if s := j.wait(); s != 130 {
		t.Errorf("exit status %d, want 130", s)
	}
	expectNothingLeft(t, peers)
}

// TestR6AbortLosesNoOutput aborts right after a line was printed.
func TestR6AbortLosesNoOutput(t *testing.T) {
	t.Parallel()
	peers := grid(t, 2, "--slots", "1")
	j := startJob(t, "--home", t.TempDir(), "--supernode", peers[0].addr, "-n", "1", "-r", "2", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "2", "-every", "10", "-abort", "7")
	if s := j.wait(); s != 7 {
		t.Errorf("exit status %d, want 7", s)
	}
	if out := j.stdout.String(); out != "rank 0 gives up\n" {
		t.Errorf("standard output: %q", out)
	}
	expectNothingLeft(t, peers)
}
