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

// slowed gives process pid a tenth of the processor time: it stops the process for nine milliseconds of every
// ten, until the test ends.
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
				return // the process has ended
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

// heatLines returns the lines of heat that do not depend on the number of ranks.
func heatLines(j *job) string {
	var lines string
	for line := range strings.Lines(j.stdout.String()) {
		if strings.HasPrefix(line, "steps ") || strings.HasPrefix(line, "centre ") {
			lines += line
		}
	}
	return lines
}

var slowSteps = flag.Int("slow.steps", 10000, "steps of heat in the test of slow masters")

// A heatRun is one run of heat.
type heatRun struct {
	took  float64   // seconds since it began to run
	moves []float64 // times of changes of master without a failure, in seconds
	lines string
}

// slowRatios holds, for all runs of the test (-count), the ratio between the times with and without
// slow masters.
var slowRatios []float64

// TestMastershipMovesFromSlowMachines runs heat with masters on machines ten times slower than the
// other replicas, and with no slow machine. The answer must be the same, printed once, and the job
// must not wait for the slow replicas. The test logs the times and does not assert them.
func TestMastershipMovesFromSlowMachines(t *testing.T) {
	peers := grid(t, 4, "--slots", "1")
	single := runHeat(t, peers, "1")
	even := runHeat(t, peers, "2")
	slow := runHeat(t, peers, "2", "0.0", "1.0")
	slowRatios = append(slowRatios, slow.took/even.took)
	slices.Sort(slowRatios)
	t.Logf("slow masters: %.2f s, moves after %.2f; none slow: %.2f s, moves after %.2f; without replicas: %.2f s",
		slow.took, slow.moves, even.took, even.moves, single.took)
	t.Logf("slow masters / none slow, %d runs: median %.2f (%.2f to %.2f)", len(slowRatios),
		slowRatios[len(slowRatios)/2], slowRatios[0], slowRatios[len(slowRatios)-1])
	if len(slow.moves) == 0 {
		t.Error("no other replica became master")
	}
	if slow.lines != single.lines || even.lines != single.lines || single.lines == "" {
		t.Errorf("got %q, and %q without a slow peer; want %q", slow.lines, even.lines, single.lines)
	}
	expectNothingLeft(t, peers)
}

// runHeat runs heat with r replicas on two ranks. The processes in slow are slowed.
func runHeat(t *testing.T, peers []*peerProcess, r string, slow ...string) (h heatRun) {
	t.Helper()
	args := []string{"--supernode", peers[0].addr, "-n", "2", "-r", r, "-w", "60", "--timeout", "200s"}
	heat := run("heat", "-side", "255", "-tolerance", "0", "-steps", strconv.Itoa(*slowSteps))
	j := submit(t, t.TempDir(), append(args, heat...)...)
	j.waitRunning()
	start := time.Now()
	for _, process := range slow {
		p := j.peerOf(peers, process)
		eventually(t, "process "+process, func() error {
			pid, ok := p.rankProcess(process)
			if !ok {
				return errors.New("not running")
			}
			slowed(t, pid)
			return nil
		})
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	h.took, h.lines = time.Since(start).Seconds(), heatLines(j)
	for e := range j.events {
		if e.View != nil && !slices.ContainsFunc(e.View.States, func(s string) bool { return s != "live" }) {
			h.moves = append(h.moves, e.Time.Sub(start).Seconds())
		}
	}
	return h
}
