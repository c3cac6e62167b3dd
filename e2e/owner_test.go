package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestS3PolicyIsSaidAtOnce has three owners who each refuse a stranger's native program for a
// reason of their own: the submitter reads all three. One of them runs a job of their own all
// the same, and finds it in the journal when the peer has gone.
func TestS3PolicyIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	first := boot(t, "--slots", "1", "--accept", "wasm")
	second := boot(t, "--slots", "1", "--accept", "none", "--supernode", first.addr)
	third := boot(t, "--slots", "1", "--supernode", first.addr, "--quiet-hours", "00:00-12:00,12:00-00:00")
	stepper := filepath.Join(bin, "stepper")

	refused := submit(t, t.TempDir(), "--supernode", first.addr, "-n", "1", "-w", "3", stepper)
	if s := refused.wait(); s != 69 {
		t.Errorf("a job that no owner wants ended with %d, want 69", s)
	}
	for _, why := range []string{"1 wasm only", "1 denied", "1 paused"} {
		if !strings.Contains(refused.stderr.String(), why) {
			t.Errorf("the submitter does not read %q:\n%s", why, refused.stderr)
		}
	}

	own := submit(t, third.home, "--peer", third.id, "-n", "1", "-w", "30", stepper, "-steps", "20", "-every", "10")
	if s := own.wait(); s != 0 {
		t.Errorf("the owner's own job ended with %d:\n%s", s, own.stderr)
	}
	expectNothingLeft(t, []*peerProcess{first, second, third})
	third.kill()

	out, err := exec.Command(filepath.Join(bin, "p2pboot"), "history", "--home", third.home, "--json").Output()
	if err != nil {
		t.Fatalf("p2pboot history: %v", err)
	}
	var past []struct {
		Submitter, Class, Kind, Program, Digest, Until, Ended string
		Processes                                             int
		CPU, Memory, Staged, Output                           int64
	}
	if err := json.Unmarshal(out, &past); err != nil || len(past) != 1 {
		t.Fatalf("want one job in the history, got %v:\n%s", err, out)
	}
	e := past[0]
	if e.Submitter != third.id || e.Class != "mine" || e.Kind != "native" || e.Program != "stepper" || len(e.Digest) != 64 || e.Until == "" || e.Ended == "" ||
		e.Processes != 1 || e.CPU <= 0 || e.Memory <= 0 || e.Staged <= 0 || e.Output != int64(len(own.stdout.String())) {
		t.Errorf("the history says %+v", e)
	}
}
