package supervisor

import (
	"bufio"
	"bytes"
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

// awaitExit waits until a process that is not a child of this one has ended.
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

// TestS4NoProcessOutlivesAKilledPeer kills a peer that has no chance to clean up. A stopped supervisor, or a
// stopped session leader, cannot notice that by itself.
func TestS4NoProcessOutlivesAKilledPeer(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, child int){
		"its children run":         func(*testing.T, int) {},
		"its children are stopped": stop,
	} {
		t.Run(name, func(t *testing.T) { testKilledPeer(t, prepare) })
	}
}

// stop stops the process, and returns when it is stopped.
func stop(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 { // -1 would address every process
		t.Fatalf("process %d must not be stopped", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitState(t, pid, true)
}

// awaitState returns when the process is stopped, or when it is not.
func awaitState(t *testing.T, pid int, stopped bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("process %d: %q, %v; want stopped: %v", pid, stat, err, stopped)
		}
		if bytes.Contains(stat, []byte(") T ")) == stopped {
			return
		}
	}
}

func testKilledPeer(t *testing.T, prepare func(t *testing.T, child int)) {
	t.Helper()
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
	var ready bool
	out := bufio.NewReader(stdout)
	for supervisor == 0 || !ready {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the peer printed %q, then %v", line, err)
		}
		fmt.Sscanf(line, "supervisor %d", &supervisor)
		ready = ready || line == "ready\n"
	}
	var pidfds []int
	for _, pid := range allPIDs() {
		if _, of, ok := parent(fmt.Sprintf("/proc/%d/stat", pid)); !ok || of != cmd.Process.Pid {
			continue // neither a supervisor nor a session leader
		}
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		prepare(t, pid)
		pidfds = append(pidfds, pidfd)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	stdout.(*os.File).SetReadDeadline(time.Now().Add(20 * time.Second))
	// The program and its orphan hold the pipe, which ends with the last of them.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	for _, pidfd := range pidfds {
		awaitExit(t, pidfd)
	}
	cmd.Wait()
	if left, _ := os.ReadDir(filepath.Dir(filepath.Dir(folder))); len(left) > 0 {
		t.Errorf("scratch folder is left: %v", left)
	}
}

// TestProgramEndsWithItsSupervisor checks that a program and its descendants end with their supervisor,
// although no process adopts the orphans.
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

// TestKillResumesAStoppedSupervisor checks that Kill resumes a stopped supervisor, which then cleans up at
// once.
func TestKillResumesAStoppedSupervisor(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	stop(t, r.cmd.Process.Pid)
	r.Kill()
	r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("the supervisor ended with %d", got)
	}
	readAll(t, r.stdout)
}

// TestKillEndsAProgramWhoseSupervisorDoesNotRun checks that the program ends even if its supervisor is
// stopped again and again.
func TestKillEndsAProgramWhoseSupervisorDoesNotRun(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	stop(t, r.cmd.Process.Pid)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for r.cmd.Process.Signal(syscall.SIGSTOP) == nil {
			select {
			case <-r.done:
				return
			default:
			}
		}
	}()
	r.killWithin(10 * time.Millisecond)
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
	<-over
	readAll(t, r.stdout)
}

// TestKillStoppedSupervisor kills a stopped supervisor, which cannot act any more.
func TestKillStoppedSupervisor(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	stop(t, r.cmd.Process.Pid)
	r.Ask()
	r.KillSupervisor()
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
	readAll(t, r.stdout)
}

func TestKillStaleFindsProgramsByDirectory(t *testing.T) {
	r := run(t, "sleep")
	readLine(t, r.stdout)
	KillStale(filepath.Dir(r.scratch))
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
}

// TestProgramsShareTheirPeersSession checks that programs run in their peer's session, so that ranks can yield
// to each other (see supervisorAttributes).
func TestProgramsShareTheirPeersSession(t *testing.T) {
	r := run(t, "sleep")
	readLine(t, r.stdout)
	want, err := unix.Getsid(0)
	got, err2 := unix.Getsid(r.program(t))
	if got != want || err != nil || err2 != nil {
		t.Errorf("the program's session is %d (%v), its peer's %d (%v)", got, err2, want, err)
	}
}
