package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// remove removes a folder and its contents, including folders that deny access to their owner. It moves the
// contents of subfolders up, so that it needs few open folders however deeply they are nested. Other
// processes may remove the folder at the same time.
func remove(ctx context.Context, folder string) error {
	err := empty(folder, removalTimeout(ctx, time.Now))
	if err == nil {
		err = os.Remove(folder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove scratch folder: %w", err)
	}
	return nil
}

// maxRemoval bounds the time to empty a folder: a remaining process may keep filling it.
const maxRemoval = 10 * time.Minute

// removalTimeout returns a function that returns an error once removal must stop: after maxRemoval, or when
// ctx ends.
func removalTimeout(ctx context.Context, now func() time.Time) (late func() error) {
	until := now().Add(maxRemoval)
	return func() error {
		if now().After(until) {
			return errors.New("a process keeps creating files in it")
		}
		return ctx.Err()
	}
}

// empty removes the contents of a folder, if it is one, until late returns an error.
func empty(folder string, late func() error) error {
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
	return each(root, ".", late, func(name string) error {
		if root.Remove(name) == nil {
			return nil
		}
		return removeSubfolder(root, name, late)
	})
}

// removeSubfolder removes a subfolder. It moves non-empty folders in it to the top.
func removeSubfolder(root *os.Root, folder string, late func() error) error {
	if err := root.Chmod(folder, 0o700); err != nil {
		return err
	}
	err := each(root, folder, late, func(name string) error {
		name = path.Join(folder, name)
		if root.Remove(name) == nil {
			return nil
		}
		if err := root.Chmod(name, 0o700); err != nil { // without permissions it might not be movable
			return err
		}
		return root.Rename(name, rand.Text())
	})
	if err != nil {
		return err
	}
	return root.Remove(folder)
}

// each calls take for all names in a folder, including those that appear meanwhile, until none is left. It
// returns an error if a name cannot be taken, or that of late.
func each(root *os.Root, folder string, late func() error, take func(name string) error) error {
	for {
		taken, failed, err := pass(root, folder, late, take)
		if err != nil || taken == 0 {
			return errors.Join(err, failed)
		}
	}
}

// portion is the number of names between two calls of late: a folder that is being filled has no end.
const portion = 1024

// pass calls take for the names that it finds once. failed is the last error of take.
func pass(root *os.Root, folder string, late func() error, take func(name string) error) (taken int, failed, err error) {
	f, err := root.Open(folder)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(portion)
		for _, name := range names {
			switch wrong := take(name); {
			case errors.Is(wrong, fs.ErrNotExist): // another process was faster
			case wrong != nil:
				failed = wrong
			default:
				taken++
			}
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && len(names) == 0:
			return taken, failed, nil
		case err == nil:
			err = late()
		}
		if err != nil {
			return taken, failed, err
		}
	}
}
