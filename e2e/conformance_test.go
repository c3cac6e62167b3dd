package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/conformance"
)

// expectConformance says whether every test of the suite has passed, once in
// each round.
func expectConformance(t *testing.T, j *job, replicated bool, rounds int) {
	t.Helper()
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	var want strings.Builder
	count := 0
	for round := range rounds {
		for _, c := range conformance.Suite() {
			if c.Min <= 4 && (c.Replicas || !replicated) {
				fmt.Fprintf(&want, "round %d passed: %s\n", round, c.Name)
				count++
			}
		}
	}
	fmt.Fprintln(&want, "tests passed:", count)
	if got := j.stdout.String(); got != want.String() {
		t.Errorf("output:\n%s\nwant:\n%s", got, want.String())
	}
}

// TestConformance runs the conformance suite as processes, over each channel.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name     string
		peers    int
		slots    string
		replicas string
		channels string
	}{
		{"shm", 1, "4", "1", "shm"},
		{"tcp", 4, "1", "1", "tcp"},
		{"stream", 4, "1", "1", "stream"},
		{"shm and tcp, r=2", 2, "4", "2", "shm,tcp"},
		{"stream, r=2", 2, "4", "2", "stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			peers := grid(t, c.peers, "--slots", c.slots)
			replicated := c.replicas != "1"
			j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "4", "-r", c.replicas, "-w", "60", "--timeout", "110s",
				"--channels", c.channels, filepath.Join(bin, "conformance"), fmt.Sprintf("-replicated=%v", replicated))
			expectConformance(t, j, replicated, 1)
			expectNothingLeft(t, peers)
		})
	}
}

// TestR2ConformanceSurvivesAKill kills a master in the midst of the suite.
func TestR2ConformanceSurvivesAKill(t *testing.T) {
	peers := grid(t, 4, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "4", "-r", "2", "-w", "60", "--timeout", "110s",
		filepath.Join(bin, "conformance"), "-replicated", "-rounds", "3")
	j.waitRunning()
	eventually(t, "the first round", func() error {
		if !strings.Contains(j.stdout.String(), "round 0 passed: no source starves") {
			return errors.New("not there yet")
		}
		return nil
	})
	killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	expectConformance(t, j, true, 3)
	expectNothingLeft(t, peers)
}
