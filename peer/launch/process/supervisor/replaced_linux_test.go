package supervisor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgradedPeerRunsItsOwnExecutable checks that a peer can run its own executable, as it does for modules,
// after an upgrade has replaced the file.
func TestUpgradedPeerRunsItsOwnExecutable(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "peer")
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "exit", "0")
	cmd.Env = append(os.Environ(), peerVariable+"="+newScratch(t))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	heard, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte("upgraded"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	heard.Close()
	cmd.Wait()
	if got := said.String(); !strings.Contains(got, "out\n") {
		t.Errorf("output %q", got)
	}
}
