package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// leastEntry is what a file or folder counts at least, in bytes: one that is empty takes
// room too.
const leastEntry = 4 << 10

// A measurement adds up what is in a folder.
type measurement struct {
	folder string
	root   *os.Root
	seen   map[[2]uint64]bool // files that may be found again
	sum    int64
}

// Measure returns how much room the files in a folder take on disk, in bytes, while
// somebody works in it who may not want that known: folders that may not be looked into
// are given permissions. The error is of a folder that cannot be measured, as it changes
// meanwhile. Files that are open and have no name any more are not seen.
func Measure(folder string) (int64, error) {
	m := measurement{folder: folder, seen: make(map[[2]uint64]bool)}
	if err := m.measure(); err != nil {
		return m.sum, fmt.Errorf("measure scratch folder: %w", err)
	}
	return m.sum, nil
}

func (m *measurement) measure() error {
	// What is a folder now may be a link to one of the owner's a moment later: a root leaves
	// the folder by none.
	err := m.permitted(".", func() (err error) { m.root, err = os.OpenRoot(m.folder); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.root.Close()
	var info fs.FileInfo
	if err := m.permitted(".", func() (err error) { info, err = m.root.Lstat("."); return err }); err != nil {
		return err
	}
	m.add(info)
	return m.walk(".")
}

// walk adds what is in one folder.
func (m *measurement) walk(folder string) error {
	var entries []fs.DirEntry
	err := m.permitted(folder, func() (err error) { entries, err = fs.ReadDir(m.root.FS(), folder); return err })
	for i := 0; i < len(entries) && err == nil; i++ {
		var info fs.FileInfo
		err = m.permitted(folder, func() (err error) { info, err = entries[i].Info(); return err })
		if err == nil {
			m.add(info)
			if info.IsDir() {
				err = m.walk(path.Join(folder, entries[i].Name()))
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it has just gone
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // likewise the folder
	}
	return err
}

func (m *measurement) add(info fs.FileInfo) {
	size, id, several := room(info)
	if several {
		if m.seen[id] {
			return
		}
		m.seen[id] = true
	}
	m.sum += max(size, leastEntry)
}

// permissions is how often a folder is given permissions, until it is its program that
// takes them away again and again.
const permissions = 3

// permitted does something that needs permissions of a folder, and has it get them at once, with
// those above it: what is not looked into now is never looked into, if they are taken away again each time.
func (m *measurement) permitted(folder string, do func() error) (err error) {
	for range permissions {
		if err = do(); !errors.Is(err, fs.ErrPermission) {
			return err
		}
		os.Chmod(m.folder, 0o700) // of the peer's own folder: it cannot be exchanged
		for i := range folder {
			if folder[i] == '/' {
				m.root.Chmod(folder[:i], 0o700)
			}
		}
		if folder != "." {
			m.root.Chmod(folder, 0o700)
		}
	}
	return err
}
