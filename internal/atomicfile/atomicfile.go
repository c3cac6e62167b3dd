package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write has the file at path hold contents, for its owner only (mode 0600). They are on the disk
// before they take the place of the old ones. Of two who write at a time one is overwritten. If it
// fails the file is as it was.
func Write(path string, contents []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no longer there once renamed
	_, err = f.Write(contents)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
