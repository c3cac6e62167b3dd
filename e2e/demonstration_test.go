package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDemonstration is a small version of the README's first command, and kills a peer while the job runs. NPB's
// own verification must succeed.
func TestDemonstration(t *testing.T) {
	t.Parallel()
	j := startJob(t, "--home", t.TempDir(), "--json", "--local", "6", "--lose", "100ms", "-n", "3", "-r", "2",
		filepath.Join(bin, "ep"), "W")
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	if out := j.stdout.String(); strings.Count(out, "SUCCESSFUL") != 1 {
		t.Errorf("output:\n%s", out)
	}
	if text := j.stderr.String(); !strings.Contains(text, "failed with its peer") {
		t.Errorf("no peer was lost:\n%s", text)
	}
}
