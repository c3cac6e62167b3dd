package workdir

import (
	"os"
	"path/filepath"
	"testing"
)

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestS4FolderOfAKilledProcessIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	killed, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Sub("home"); err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the kernel does
	alive, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if exists(killed.path) {
		t.Error("the folder of the killed process was not removed")
	}
	RemoveStale()
	if !exists(alive.path) {
		t.Error("the folder of a living process was removed")
	}
	if err := alive.Close(); err != nil || exists(alive.path) {
		t.Errorf("after Close: %v, or not removed", err)
	}
}

func TestForeignFoldersAreKept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	foreign := filepath.Join(os.TempDir(), prefix+"notes")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	RemoveStale()
	if !exists(foreign) {
		t.Error("a folder without a lock was removed")
	}
}
