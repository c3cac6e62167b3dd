package workdir

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const prefix = "p2prun-"

// A Dir is a temporary folder.
type Dir struct {
	path string
	lock *flock.Flock
}

// New creates a folder, after removing those of killed processes.
func New() (*Dir, error) {
	RemoveStale()
	for {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, fmt.Errorf("create a temporary folder: %w", err)
		}
		d := &Dir{path, flock.New(lockName(path))}
		ok, err := d.lock.TryLock()
		if err != nil {
			os.RemoveAll(path)
			return nil, fmt.Errorf("create a temporary folder: %w", err)
		}
		// RemoveStale in another process may hold the lock, or may have removed the file.
		if _, err := os.Stat(lockName(path)); ok && err == nil {
			return d, nil
		}
		d.lock.Close()
	}
}

func lockName(dir string) string { return filepath.Join(dir, "lock") }

// Sub creates a subfolder of d and returns its path.
func (d *Dir) Sub(name string) (string, error) {
	sub := filepath.Join(d.path, name)
	if err := os.Mkdir(sub, 0o700); err != nil {
		return "", fmt.Errorf("create a temporary folder: %w", err)
	}
	return sub, nil
}

// Close removes the folder with its contents.
func (d *Dir) Close() error {
	err := os.RemoveAll(d.path)
	d.lock.Close()
	if err != nil {
		return fmt.Errorf("remove the temporary folder: %w", err)
	}
	return nil
}

// RemoveStale removes the folders of killed p2prun processes. It ignores folders that it cannot remove.
func RemoveStale() {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return
	}
	for _, f := range folders {
		if _, err := os.Stat(lockName(f)); err != nil {
			continue // a folder that is being created, or of another program
		}
		lock := flock.New(lockName(f), flock.SetFlag(os.O_RDONLY))
		if ok, err := lock.TryLock(); ok && err == nil {
			os.RemoveAll(f)
			lock.Close()
		}
	}
}
