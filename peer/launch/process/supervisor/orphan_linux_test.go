package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func init() { roles["orphan"], roles["timeout"] = reportOrphans, giveUp }

// reportOrphans is a supervisor whose program leaves a child that continues to write and to start
// processes. It prints whether any process is left when the program's exit is reported, and whether any has
// written after that.
func reportOrphans() int {
	const script = `
(i=0; while [ $((i += 1)) -lt 10000 ]; do echo more; sleep 1 & done) >written 2>/dev/null &
until [ -s written ]; do :; done`
	if err := adoptOrphans(); err != nil {
		return 1
	}
	program, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2}, Env: os.Environ(),
	})
	if err != nil {
		return 1
	}
	asked := make(chan request)
	var before int64
	watch(program, asked, time.Hour, func(w status) {
		if w.Exit == nil {
			fmt.Println(w.Gone)
			close(asked) // as if the peer closed the life pipe
			return
		}
		_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		before = written()
		fmt.Println(err)
	})
	fmt.Println(before > 0, written()-before)
	return 0
}

func written() int64 {
	info, err := os.Stat("written")
	if err != nil {
		return 0
	}
	return info.Size()
}

// giveUp is a supervisor whose children never seem to end.
func giveUp() int {
	past := make(chan time.Time)
	close(past)
	sweep(os.Getpid(), nil, past)
	fmt.Println("given up")
	return 0
}

// play runs this test binary in a role, and returns its output.
func play(t *testing.T, role string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("ended with %v", err)
	}
	return string(out)
}

// TestNoProcessWritesAfterTheExitReport checks that no process writes after the program's exit is
// reported: the peer may then read the files as its own user.
func TestNoProcessWritesAfterTheExitReport(t *testing.T) {
	if got := play(t, "orphan"); got != "no child processes\ntrue\ntrue 0\n" {
		t.Errorf("output %q", got)
	}
}

// TestExitIsReportedDespiteSurvivingDescendants checks that a program's exit is reported although its
// descendants do not end.
func TestExitIsReportedDespiteSurvivingDescendants(t *testing.T) {
	if got := play(t, "timeout"); got != "given up\n" {
		t.Errorf("output %q", got)
	}
}
