package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// remove removes a folder and all that is in it, also folders that deny their owner. However
// deep they are nested, few are open: what is in a subfolder is moved up.
func remove(folder string) error {
	err := empty(folder)
	if err == nil {
		err = os.Remove(folder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove scratch folder: %w", err)
	}
	return nil
}

// empty removes what is in a folder, if it is one.
func empty(folder string) error {
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
		return err
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	until := time.Now().Add(longest)
	return each(root, ".", until, func(name string) error {
		if root.Remove(name) == nil {
			return nil
		}
		return dissolve(root, name, until)
	})
}

// dissolve removes a subfolder. The folders in it that are not empty are moved to the top.
func dissolve(root *os.Root, folder string, until time.Time) error {
	if err := root.Chmod(folder, 0o700); err != nil {
		return err
	}
	err := each(root, folder, until, func(name string) error {
		name = path.Join(folder, name)
		if root.Remove(name) == nil {
			return nil
		}
		if err := root.Chmod(name, 0o700); err != nil { // or it may not be moved
			return err
		}
		return root.Rename(name, rand.Text())
	})
	if err != nil {
		return err
	}
	return root.Remove(folder)
}

// longest is how long a folder is emptied: somebody may be left who fills it meanwhile.
const longest = 10 * time.Minute

// each has all names of a folder taken out of it, those too that come meanwhile. The error is of one
// that cannot be.
func each(root *os.Root, folder string, until time.Time, take func(name string) error) error {
	for {
		taken, failed, err := pass(root, folder, take)
		if err != nil || taken == 0 {
			return errors.Join(err, failed)
		}
		if time.Now().After(until) {
			return errors.New("it is being filled")
		}
	}
}

// pass has the names taken that it finds. failed is of the last that could not be.
func pass(root *os.Root, folder string, take func(name string) error) (taken int, failed, err error) {
	const portion = 1024
	f, err := root.Open(folder)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(portion)
		for _, name := range names {
			if wrong := take(name); wrong != nil {
				failed = wrong
				continue
			}
			taken++
		}
		if len(names) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return taken, failed, err
		}
	}
}
