package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the contents of the file at path, with mode 0600. The contents are synced to disk before
// they replace the old ones. If two calls run concurrently, one of them overwrites the other. On failure
// the file is unchanged.
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
