package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// leastEntry is what a file or folder counts at least, in bytes: one that is empty takes
// room too.
const leastEntry = 4 << 10

// Measure returns how much room the files in a folder take on disk, in bytes, while
// somebody works in it who may not want that known. The error is of a folder that
// cannot be measured. Files that are open and have no name any more are not seen.
func Measure(folder string) (int64, error) {
	var sum int64
	seen := make(map[[2]uint64]bool) // files with several names
	// What is a folder now may be a link to one of the owner's a moment later: a root leaves
	// the folder by none.
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		os.Chmod(folder, 0o700) // of the peer's own folder: it cannot be exchanged
		root, err = os.OpenRoot(folder)
	}
	if err != nil {
		return 0, fmt.Errorf("measure scratch folder: %w", err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) && d != nil && d.IsDir() {
			root.Chmod(path, 0o700) // it is looked into next time
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just gone
		}
		if err != nil {
			return err
		}
		size, id, several := room(info)
		if several {
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		sum += max(size, leastEntry)
		return nil
	})
	if err != nil {
		return sum, fmt.Errorf("measure scratch folder: %w", err)
	}
	return sum, nil
}
