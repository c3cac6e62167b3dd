package e2e

import (
	"path/filepath"
	"testing"
)

// TestTwoSubmittersCompeteForSlots runs two jobs of four processes that request the same six
// slots at once. Each gets all or nothing, and both finish.
func TestTwoSubmittersCompeteForSlots(t *testing.T) {
	t.Parallel()
	peers := grid(t, 6, "--slots", "1")
	var jobs []*job
	for range 2 {
		jobs = append(jobs, submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "110",
			filepath.Join(bin, "stepper"), "-steps", "100", "-every", "10"))
	}
	for i, j := range jobs {
		if s := j.wait(); s != 0 {
			t.Fatalf("job %d: exit status %d", i, s)
		}
		expectStepper(t, j, 2, 100, 10)
	}
	expectNothingLeft(t, peers)
}

// TestS3MaxJobs allows a peer many processes, but of only one job.
func TestS3MaxJobs(t *testing.T) {
	t.Parallel()
	peers := grid(t, 1, "--slots", "4", "--max-jobs", "1")
	long := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "1", "-w", "60", filepath.Join(bin, "stepper"), "-steps", "1000000", "-every", "1")
	long.waitRunning()
	second := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "1", "-w", "2", filepath.Join(bin, "stepper"))
	if s := second.wait(); s != 69 {
		t.Errorf("a second job ended with status %d, want 69", s)
	}
	long.cmd.Process.Kill()
	expectNothingLeft(t, peers)
}
