package walk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// TestFoldersLockedDuringTheWalk checks that locked folders do not stop a walk, even if they are above the current
// folder.
func TestFoldersLockedDuringTheWalk(t *testing.T) {
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	all := []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "a/b")}
	write(t, dir, "a/b/file", "a/after")
	for _, path := range append(all, filepath.Join(all[2], "file"), filepath.Join(all[1], "after")) {
		if err := os.Lchown(path, nobody, nobody); os.Getuid() == 0 && err != nil {
			t.Fatal(err)
		}
	}
	lock := func() error {
		var errs []error
		for i := range all {
			errs = append(errs, os.Chmod(all[len(all)-1-i], 0))
		}
		return errors.Join(errs...)
	}
	files, done := 0, make(chan struct{})
	go func() { // until the walk is done
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if os.Getuid() == 0 {
			unix.SetfsuidRetUid(nobody)
		}
		err = Walk(dir, func(e *Entry) error {
			if !e.IsFolder() {
				files++
				return nil
			}
			os.Chmod(dir, 0o700) // dir contains the other folders
			os.Chmod(all[1], 0o700)
			return lock()
		})
	}()
	<-done
	if err != nil || files != 2 {
		t.Errorf("the walk visited %d files, %v", files, err)
	}
}
