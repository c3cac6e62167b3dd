package supervisor

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// TestHaltStopsAll, and says who was born last among them.
func TestHaltStopsAll(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	if !r.Walled() {
		t.Skip("there is no PID namespace")
	}
	first, err := r.Halt()
	if err != nil || first == 0 {
		t.Fatalf("got %d, %v", first, err)
	}
	all := descendants(r.cmd.Process.Pid)
	if len(all) < 2 {
		t.Fatalf("processes %v", all)
	}
	for _, pid := range all {
		stop(t, pid) // it is already
	}
	if again, err := r.Halt(); err != nil || again != first {
		t.Errorf("born last: %d, %v; before: %d", again, err, first)
	}
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	for late := time.Now().Add(20 * time.Second); r.ask(t); {
		if time.Now().After(late) {
			t.Fatal("it does not go on")
		}
	}
	r.Kill()
	r.Wait()
	if _, err := r.Halt(); !errors.Is(err, ErrEnded) {
		t.Errorf("of one that has ended: %v", err)
	}
}
