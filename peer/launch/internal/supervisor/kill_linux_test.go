package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a process that is not our child is gone.
func awaitExit(t *testing.T, pidfd int) {
	t.Helper()
	defer unix.Close(pidfd)
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(20 * time.Second); ; {
		n, err := unix.Poll(fds, int(time.Until(deadline).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("process is still there: %v", err)
		}
		return
	}
}

// TestS4NothingOutlivesAKilledPeer: the peer gets no chance to clean up.
func TestS4NothingOutlivesAKilledPeer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := newScratch(t)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), peerVariable+"="+folder)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var supervisor int
	out := bufio.NewReader(stdout)
	for supervisor == 0 {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the peer said %q, then %v", line, err)
		}
		fmt.Sscanf(line, "ready %d", &supervisor)
	}
	pidfd, err := unix.PidfdOpen(supervisor, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	// The program and its orphan hold the pipe; it ends with the last of them.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, pidfd)
	cmd.Wait()
	if left, _ := os.ReadDir(filepath.Dir(filepath.Dir(folder))); len(left) > 0 {
		t.Errorf("scratch folder is left: %v", left)
	}
}

// TestProgramEndsWithItsSupervisor: also what it has started, although nobody
// is there to adopt it.
func TestProgramEndsWithItsSupervisor(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
	readAll(t, r.stdout)
}

// TestKillWakesAStoppedSupervisor, which then does its work at once.
func TestKillWakesAStoppedSupervisor(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("the supervisor ended with %d", got)
	}
	readAll(t, r.stdout)
}

// TestKillSupervisorThatIsStopped: it can do nothing by itself any more.
func TestKillSupervisorThatIsStopped(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.Ask()
	r.KillSupervisor()
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
	readAll(t, r.stdout)
}

func TestKillStaleFindsProgramsByFolder(t *testing.T) {
	r := run(t, "sleep")
	readLine(t, r.stdout)
	KillStale(filepath.Dir(r.scratch))
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
}
