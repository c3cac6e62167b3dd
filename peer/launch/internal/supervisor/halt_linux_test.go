package supervisor

import (
	"bufio"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// TestHaltStopsAll, and says who was born last among them.
func TestHaltStopsAll(t *testing.T) {
	r := run(t, "orphan")
	for said, text := bufio.NewReader(r.stdout), ""; text != "ready\n"; { // the one in the middle has been waited for
		var err error
		if text, err = said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if !r.Walled() {
		skip.Lacks(t, "a PID namespace")
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
	for last, late := first, time.Now().Add(20*time.Second); ; { // a thread may have been under way
		again, err := r.Halt()
		if err == nil && again == last {
			break
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("born last: %d, %v; before: %d", again, err, last)
		}
		last = again
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

// TestHaltEndsWithItsSupervisor that does not answer.
func TestHaltEndsWithItsSupervisor(t *testing.T) {
	r := run(t, "sleep")
	readLine(t, r.stdout)
	if !r.Walled() {
		skip.Lacks(t, "a PID namespace")
	}
	stop(t, r.cmd.Process.Pid)
	ended := make(chan error)
	go func() { // ends with the supervisor
		_, err := r.Halt()
		ended <- err
	}()
	r.KillSupervisor()
	if err := <-ended; !errors.Is(err, ErrEnded) {
		t.Errorf("got %v", err)
	}
}
