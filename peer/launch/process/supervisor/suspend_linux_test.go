package supervisor

import (
	"bufio"
	"syscall"
	"testing"
	"time"
)

// TestSuspendStopsAll checks that Suspend stops all processes, including when it is called again.
func TestSuspendStopsAll(t *testing.T) {
	r := run(t, "orphan")
	for said, text := bufio.NewReader(r.stdout), ""; text != "ready\n"; { // the process in the middle has been reaped
		var err error
		if text, err = said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	all := descendants(r.cmd.Process.Pid)
	if len(all) < 2 {
		t.Fatalf("processes %v", all)
	}
	for range 2 {
		r.Suspend()
		for _, pid := range all {
			awaitState(t, pid, true)
		}
		for _, pid := range all {
			syscall.Kill(pid, syscall.SIGCONT)
			awaitState(t, pid, false)
		}
		for late := time.Now().Add(20 * time.Second); r.ask(t); {
			if time.Now().After(late) {
				t.Fatal("the supervisor reports that the program is still stopped")
			}
		}
	}
}
