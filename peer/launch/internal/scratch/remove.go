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

// remove removes a folder and all that is in it, also folders that deny their owner. However
// deep they are nested, few are open: what is in a subfolder is moved up. Others may remove it at the same time.
func remove(ctx context.Context, folder string) error {
	err := empty(folder, patience(ctx, time.Now))
	if err == nil {
		err = os.Remove(folder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove scratch folder: %w", err)
	}
	return nil
}

// longest is how long a folder is emptied: somebody may be left who fills it meanwhile.
const longest = 10 * time.Minute

// patience returns why no more is to be removed, or nil: it has taken too long, or ctx has ended.
func patience(ctx context.Context, now func() time.Time) (late func() error) {
	until := now().Add(longest)
	return func() error {
		if now().After(until) {
			return errors.New("it is being filled")
		}
		return ctx.Err()
	}
}

// empty removes what is in a folder, if it is one, until it is late.
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
		return dissolve(root, name, late)
	})
}

// dissolve removes a subfolder. The folders in it that are not empty are moved to the top.
func dissolve(root *os.Root, folder string, late func() error) error {
	if err := root.Chmod(folder, 0o700); err != nil {
		return err
	}
	err := each(root, folder, late, func(name string) error {
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

// each has all names of a folder taken out of it, those too that come meanwhile. The error is of one
// that cannot be, or that of late.
func each(root *os.Root, folder string, late func() error, take func(name string) error) error {
	for {
		taken, failed, err := pass(root, folder, late, take)
		if err != nil || taken == 0 {
			return errors.Join(err, failed)
		}
	}
}

// portion is how many names are taken before it is asked again whether it is late: a folder that is filled
// meanwhile has no end.
const portion = 1024

// pass has the names taken that it finds. failed is of the last that could not be.
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
			case errors.Is(wrong, fs.ErrNotExist): // somebody else was faster
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
