package e2e

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowed gives the process pid a tenth of its time: it is stopped for nine
// milliseconds of ten, until the test ends.
func slowed(t *testing.T, pid int) {
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-ended })
	go func() { // ends with the test
		defer close(ended)
		for turn := 0; ; turn++ {
			signal, lasts := syscall.SIGSTOP, 9*time.Millisecond
			if turn%2 == 1 {
				signal, lasts = syscall.SIGCONT, time.Millisecond
			}
			if syscall.Kill(pid, signal) != nil {
				return // it has ended
			}
			select {
			case <-time.After(lasts):
			case <-stop:
				syscall.Kill(pid, syscall.SIGCONT)
				return
			}
		}
	}()
}

// heatLines are the lines of heat that do not depend on who computed.
func heatLines(j *job) string {
	var lines string
	for line := range strings.Lines(j.stdout.String()) {
		if strings.HasPrefix(line, "steps ") || strings.HasPrefix(line, "centre ") {
			lines += line
		}
	}
	return lines
}

// TestMastershipMovesFromSlowMachines runs heat with masters on machines ten times
// slower than the other replicas, and once with nobody slow: the answer is the same,
// once, and the slow ones need not come to their end. How long the two take is
// logged and not asserted.
func TestMastershipMovesFromSlowMachines(t *testing.T) {
	peers := grid(t, 4, "--slots", "1")
	heat := run("heat", "-side", "255", "-steps", "6000")
	args := func(r string) []string {
		return append([]string{"--supernode", peers[0].addr, "-n", "2", "-r", r, "-w", "60", "--timeout", "110s"}, heat...)
	}
	even := submit(t, t.TempDir(), args("1")...)
	even.waitRunning()
	start := time.Now()
	if s := even.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	alone := time.Since(start)

	j := submit(t, t.TempDir(), args("2")...)
	j.waitRunning()
	start = time.Now()
	for _, process := range []string{"0.0", "1.0"} {
		p := j.peerOf(peers, process)
		eventually(t, "process "+process, func() error {
			pid, ok := p.rankProcess(process)
			if !ok {
				return errors.New("not there")
			}
			slowed(t, pid)
			return nil
		})
	}
	j.waitFor("another master", func(e event) bool { return e.View != nil && slices.Contains(e.View.Masters, 1) })
	t.Logf("mastership moved after %v", time.Since(start).Round(time.Millisecond))
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	took := time.Since(start)
	t.Logf("%v with slow masters, %v without them: %.2f times", took.Round(time.Millisecond), alone.Round(time.Millisecond), float64(took)/float64(alone))
	if got, want := heatLines(j), heatLines(even); got != want || want == "" {
		t.Errorf("got %q, want %q", got, want)
	}
	expectNothingLeft(t, peers)
}
