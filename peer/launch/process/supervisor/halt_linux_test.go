package supervisor

import (
	"bufio"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// TestHaltStopsAll checks that Halt stops all processes, and returns the last ID assigned among them.
func TestHaltStopsAll(t *testing.T) {
	r := run(t, "orphan")
	for said, text := bufio.NewReader(r.stdout), ""; text != "ready\n"; { // the process in the middle has been reaped
		var err error
		if text, err = said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if !r.InPIDNamespace() {
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
		stop(t, pid) // the process is stopped already
	}
	for last, late := first, time.Now().Add(20*time.Second); ; { // a thread may have been about to stop
		again, err := r.Halt()
		if err == nil && again == last {
			break
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("last ID: %d, %v; before: %d", again, err, last)
		}
		last = again
	}
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	for late := time.Now().Add(20 * time.Second); r.ask(t); {
		if time.Now().After(late) {
			t.Fatal("the program did not resume")
		}
	}
	r.Kill()
	r.Wait()
	if _, err := r.Halt(); !errors.Is(err, errEnded) {
		t.Errorf("for a program that has ended: %v", err)
	}
}

// TestHaltEndsWithItsSupervisor checks that Halt returns when a supervisor that does not answer is killed.
func TestHaltEndsWithItsSupervisor(t *testing.T) {
	r := run(t, "sleep")
	readLine(t, r.stdout)
	if !r.InPIDNamespace() {
		skip.Lacks(t, "a PID namespace")
	}
	stop(t, r.cmd.Process.Pid)
	ended := make(chan error)
	go func() { // ends with the supervisor
		_, err := r.Halt()
		ended <- err
	}()
	r.KillSupervisor()
	if err := <-ended; !errors.Is(err, errEnded) {
		t.Errorf("got %v", err)
	}
}
