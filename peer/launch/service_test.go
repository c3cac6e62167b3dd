package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestPeerStartsDespiteStaleDirectories checks that a peer starts if it cannot remove the folders
// of an earlier one.
func TestPeerStartsDespiteStaleDirectories(t *testing.T) {
	m := newMember(t, 1)
	m.launch.Close()
	stale := filepath.Join(m.home, scratchFolder)
	if err := errors.Join(os.RemoveAll(stale), os.WriteFile(stale, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := NewService(m.Host, m.launch.config)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
