package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReplicasAreOnDifferentMachines checks that two peers of this machine never take both replicas
// of a rank, and count as one for -r auto. A peer of another machine takes one.
func TestReplicasAreOnDifferentMachines(t *testing.T) {
	t.Parallel()
	peers := grid(t, 2, "--slots", "1", "--machine", "auto")
	args := []string{"--home", t.TempDir(), "--supernode", peers[0].addr, "-w", "2", "-n", "1", "-r", "2", filepath.Join(bin, "stepper"), "-steps", "6"}
	j := startJob(t, args...)
	if s := j.wait(); s != 69 {
		t.Errorf("exit status %d of a job on one machine, want 69", s)
	}
	for _, says := range []string{"must be on different machines", "same machine"} {
		if text := strings.Join(strings.Fields(j.stderr.String()), " "); !strings.Contains(text, says) {
			t.Errorf("p2prun did not print %q:\n%s", says, text)
		}
	}
	auto := []string{"--home", t.TempDir(), "--supernode", peers[0].addr, "-w", "2", "-n", "1", "-r", "auto", "--success", "0.99", "--expect", "1h", filepath.Join(bin, "stepper"), "-steps", "6"}
	j = startJob(t, auto...)
	if s := j.wait(); s != 69 {
		t.Errorf("exit status %d of -r auto on one machine, want 69", s)
	}
	if text := strings.Join(strings.Fields(j.stderr.String()), " "); !strings.Contains(text, "found on 1 machine") {
		t.Errorf("-r auto on one machine printed:\n%s", text)
	}
	j = startJob(t, "--home", t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "--dry-run", filepath.Join(bin, "stepper"))
	if s := j.wait(); s != 0 || !strings.Contains(j.stderr.String(), "2 slots share a machine") {
		t.Errorf("--dry-run on one machine: exit status %d\n%s", s, j.stderr.String())
	}
	peers = append(peers, boot(t, "--slots", "1", "--machine", "another", "--supernode", peers[0].addr))
	args[1] = t.TempDir()
	if j := startJob(t, args...); j.wait() != 0 {
		t.Errorf("with a peer of another machine: %s", j.stderr.String())
	}
	auto[1] = t.TempDir()
	if j := startJob(t, auto...); j.wait() != 0 {
		t.Errorf("-r auto with a peer of another machine: %s", j.stderr.String())
	}
	expectNothingLeft(t, peers)
}
