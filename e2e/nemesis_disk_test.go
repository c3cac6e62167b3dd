package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// diskBytes is the size of a peer's disk: enough for the programs and the scratch directories of a
// round.
const diskBytes = "256m"

// diskOf returns a directory on a separate disk in memory, so that other peers are not affected
// when it is full. Without permission to mount one, the directory is an ordinary one; only root can
// fill disks.
func diskOf(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	err := unix.Mount("p2pmpi-e2e", home, "tmpfs", unix.MS_NODEV, "mode=700,size="+diskBytes)
	switch {
	case errors.Is(err, unix.EPERM):
	case err != nil:
		t.Fatalf("mount a disk: %v", err)
	default:
		t.Cleanup(func() {
			if err := unix.Unmount(home, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", home, err)
			}
		})
	}
	return home
}

// fill fills the disk of home, and returns a function that frees the space. ok is false if home has
// no separate disk.
func fill(t *testing.T, home string) (clear func(), ok bool) {
	t.Helper()
	var disk, parent unix.Stat_t
	if unix.Stat(home, &disk) != nil || unix.Stat(filepath.Dir(home), &parent) != nil || disk.Dev == parent.Dev {
		return nil, false
	}
	f, err := os.CreateTemp(home, "p2pmpi-e2e-ballast-*") // two strikes may fill the disk at the same time
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil { // full, at least for a chunk of this size
			chunk = chunk[:len(chunk)/2]
		}
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Errorf("clear a disk: %v", err)
		}
	}, true
}
