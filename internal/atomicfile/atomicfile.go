package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the file at path by a file with the given contents and mode 0600. The new contents are synced to
// disk before they replace the old ones. If two calls for the same path run concurrently, the file has the
// contents of one of them. On failure the file is unchanged.
func Write(path string, contents []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails harmlessly after the rename
	_, err = f.Write(contents)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
