package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelsWithReplicas runs the NAS kernels with two replicas of each rank, on separate peers.
// The report must appear once (R6), and NPB's own verification must accept it.
func TestKernelsWithReplicas(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4)
	for _, kernel := range []string{"ep", "cg", "is", "mg", "ft"} {
		t.Run(kernel, func(t *testing.T) {
			j := submit(t, peers[0].home, "-n", "2", "-r", "2", filepath.Join(bin, kernel), "-class", "S", "-times")
			if status := j.wait(); status != 0 {
				t.Fatalf("exit status %d", status)
			}
			for _, line := range []string{"Class        = S", "Ranks        = 2", "Verification = SUCCESSFUL"} {
				if n := strings.Count(j.stdout.String(), " "+line+"\n"); n != 1 {
					t.Errorf("line %q occurs %d times in\n%s", line, n, j.stdout.String())
				}
			}
		})
	}
	expectNothingLeft(t, peers)
}
