package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// copyHome returns a new home with all files of another, like a backup that is restored on a second
// machine.
func copyHome(t *testing.T, home string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "*"))
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// expectRefusedCopy waits until a peer has ended because it is a copy.
func expectRefusedCopy(t *testing.T, p *peerProcess) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		t.Fatalf("the copy keeps running:\n%s", p.log)
	}
	if s := p.cmd.ProcessState.ExitCode(); s != 64 {
		t.Errorf("the copy ended with status %d, want 64", s)
	}
	for _, want := range []string{"is a copy of one that is in use", "remove the file identity"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the copy logged %q, want %q", p.log, want)
		}
	}
}

// TestCopiedHome boots a peer on a copy of a home that is in use. A supernode known to both detects
// this. After a power failure, the same home can be booted again.
func TestCopiedHome(t *testing.T) {
	t.Parallel()
	supernode := boot(t, "--slots", "0")
	original := boot(t, "--supernode", supernode.addr)
	copied := loopback.startPeer(t, copyHome(t, original.home), "--supernode", supernode.addr)
	expectRefusedCopy(t, copied)
	if len(copied.ready) > 0 {
		t.Error("the copy reported that it was ready")
	}
	original.kill()
	again := bootAt(t, original.home, "--supernode", supernode.addr)
	if again.id != original.id {
		t.Errorf("the original peer restarted as %s, not %s", again.id, original.id)
	}
	expectRefusedCopy(t, loopback.startPeer(t, copied.home, "--supernode", supernode.addr))
	if !again.alive() {
		t.Errorf("the original peer ended:\n%s", again.log)
	}
}

// TestLANCopiedHome boots a copy of a home. Only another peer of the LAN can detect the copy.
func TestLANCopiedHome(t *testing.T) {
	t.Parallel()
	machines := newLAN(t, 3)
	original := machines[0].startPeer(t, t.TempDir(), "--slots", "1")
	original.awaitReady()
	witness := machines[1].startPeer(t, t.TempDir(), "--slots", "1")
	witness.awaitReady()
	copied := machines[2].startPeer(t, copyHome(t, original.home), "--slots", "1")
	expectRefusedCopy(t, copied)
	if !original.alive() || !witness.alive() {
		t.Error("the original peer or the witness ended")
	}
}
