package e2e

import (
	"errors"
	"flag"
	"slices"
	"strconv"
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

var slowSteps = flag.Int("slow.steps", 6000, "steps of heat in the test of slow masters")

// TestMastershipMovesFromSlowMachines runs heat with masters on machines ten times
// slower than the other replicas, and with nobody slow: the answer is the same, once, and
// the slow ones need not come to their end. How long they take is logged and not
// asserted.
func TestMastershipMovesFromSlowMachines(t *testing.T) {
	peers := grid(t, 4, "--slots", "1")
	single, _, want := runHeat(t, peers, "1")
	even, _, _ := runHeat(t, peers, "2")
	slow, moved, got := runHeat(t, peers, "2", "0.0", "1.0")
	t.Logf("slow masters: the first is none after %.2f s, %.2f s in all; nobody slow: %.2f s, %.2f times that; without replicas: %.2f s, %.2f times",
		moved.Seconds(), slow.Seconds(), even.Seconds(), slow.Seconds()/even.Seconds(), single.Seconds(), slow.Seconds()/single.Seconds())
	if got != want || want == "" {
		t.Errorf("got %q, want %q", got, want)
	}
	expectNothingLeft(t, peers)
}

// runHeat runs heat with r replicas on two ranks, and returns how long that took from when
// it ran. Some processes may be slow, and are the masters then: moved is how long
// it took until one of them was not.
func runHeat(t *testing.T, peers []*peerProcess, r string, slow ...string) (took, moved time.Duration, lines string) {
	t.Helper()
	args := []string{"--supernode", peers[0].addr, "-n", "2", "-r", r, "-w", "60", "--timeout", "110s"}
	heat := run("heat", "-side", "255", "-tolerance", "0", "-steps", strconv.Itoa(*slowSteps))
	j := submit(t, t.TempDir(), append(args, heat...)...)
	j.waitRunning()
	start := time.Now()
	for _, process := range slow {
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
	if len(slow) > 0 {
		j.waitFor("another master", func(e event) bool { return e.View != nil && slices.Contains(e.View.Masters, 1) })
		moved = time.Since(start)
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	return time.Since(start), moved, heatLines(j)
}
