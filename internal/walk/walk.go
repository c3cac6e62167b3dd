//go:build unix

package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxDepth bounds the depth of nested folders.
const MaxDepth = 1000

// Errors of a walk.
var (
	ErrDeep  = fmt.Errorf("folders are nested more than %d levels deep", MaxDepth)
	errMoved = errors.New("a folder was moved during the walk")
)

// An Entry is a name in the tree and its metadata. It is valid until visit returns.
type Entry struct {
	Name string // last element of the path; "." for the root of the walk
	Stat unix.Stat_t
	w    *walker
}

// IsFolder reports whether the entry is a folder.
func (e *Entry) IsFolder() bool { return e.Stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// IsRegular reports whether the entry is a regular file.
func (e *Entry) IsRegular() bool { return e.Stat.Mode&unix.S_IFMT == unix.S_IFREG }

// Depth returns the number of names in Path; 0 for the root of the walk.
func (e *Entry) Depth() int { return len(e.w.levels) }

// Path returns the slash-separated path from the root of the walk. Each call computes the path
// again. The length of the path grows with the nesting of folders.
func (e *Entry) Path() string {
	var names []string
	for i := range e.w.levels {
		names = append(names, e.w.levels[i].name)
	}
	return path.Clean(strings.Join(append(names, e.Name), "/"))
}

// Walk calls visit for a folder and for each name below it, a folder before its contents and otherwise in no
// particular order. An error of visit ends the walk and is returned unchanged, except for fs.SkipDir, which skips
// the contents of the visited folder. Walk also returns ErrDeep, and errors of folders that cannot be read.
// Entries that disappear during the walk are skipped. The path of the folder itself must not be under the control
// of an untrusted program.
func Walk(folder string, visit func(*Entry) error) error {
	w := &walker{visit: visit}
	w.entry.w = w
	defer w.close()
	if err := w.begin(folder); err != nil {
		return err
	}
	for len(w.levels) > 0 {
		name, err := w.next()
		switch {
		case err != nil:
			return err
		case name == "":
			err = w.leave()
		default:
			err = w.look(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// window is the number of folders that are open at a time. For folders further up, the walk remembers the
// read position.
const window = 32

// portion is the number of bytes of a folder that are read at a time.
const portion = 4 << 10

// A walker is the state of a walk. Its last level is the folder that is being read.
type walker struct {
	visit  func(*Entry) error
	levels []level
	closed int // number of closed levels at the beginning
	entry  Entry
	names  []string // reused by next; at most one name
}

// A level is the folder that is being read, or a folder above it.
type level struct {
	name   string
	fd     int
	id     identity
	buffer []byte // portion bytes
	rest   []byte // unread entries in buffer
	offset int64  // read position of a closed folder
}

// An identity distinguishes folders.
type identity struct{ device, inode uint64 }

func identify(fd int) (identity, error) {
	var s unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &s) })
	return identity{uint64(s.Dev), s.Ino}, err //nolint:unconvert // its type differs from system to system
}

// begin visits the root of the walk and opens it.
func (w *walker) begin(folder string) error {
	fd := -1
	open := func() (err error) { fd, err = unix.Open(folder, opening, 0); return err }
	unlock := func() { os.Chmod(folder, 0o700) }
	if err := permitted(open, unlock); err != nil {
		return &fs.PathError{Op: "open", Path: folder, Err: err}
	}
	if err := retry(func() error { return unix.Fstat(fd, &w.entry.Stat) }); err != nil {
		unix.Close(fd)
		return &fs.PathError{Op: "stat", Path: folder, Err: err}
	}
	w.entry.Name = "."
	if err := w.visit(&w.entry); err != nil {
		unix.Close(fd)
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	return w.push(".", fd)
}

// opening contains the flags for opening folders.
const opening = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// push starts to read a folder.
func (w *walker) push(name string, fd int) error {
	id, err := identify(fd)
	if err != nil {
		unix.Close(fd)
		return wrong("stat", name, err)
	}
	var buffer []byte
	if n := len(w.levels); n < cap(w.levels) {
		buffer = w.levels[:n+1][n].buffer // reuse the buffer of an earlier level of this depth
	}
	if buffer == nil {
		buffer = make([]byte, portion)
	}
	w.levels = append(w.levels, level{name: name, fd: fd, id: id, buffer: buffer})
	if len(w.levels)-w.closed <= window {
		return nil
	}
	above := &w.levels[w.closed]
	if above.offset, err = unix.Seek(above.fd, 0, unix.SEEK_CUR); err != nil {
		return wrong("seek", above.name, err)
	}
	unix.Close(above.fd)
	w.closed++
	return nil
}

// next returns the next name of the folder that is being read, or "" at its end.
func (w *walker) next() (string, error) {
	l := &w.levels[len(w.levels)-1]
	for {
		var n int
		n, _, w.names = unix.ParseDirent(l.rest, 1, w.names[:0])
		l.rest = l.rest[n:]
		if len(w.names) > 0 {
			return w.names[0], nil
		}
		err := retry(func() (err error) { n, err = unix.ReadDirent(l.fd, l.buffer); return err })
		if errors.Is(err, fs.ErrNotExist) {
			err, n = nil, 0 // the folder has been removed
		}
		if err != nil {
			return "", wrong("read", l.name, err)
		}
		if n <= 0 {
			return "", nil
		}
		l.rest = l.buffer[:n]
	}
}

// look visits a name and, if it is a folder, starts to read it.
func (w *walker) look(name string) error {
	in := w.levels[len(w.levels)-1].fd
	allow := func() { unix.Fchmod(in, 0o700) }
	err := permitted(func() error { return unix.Fstatat(in, name, &w.entry.Stat, unix.AT_SYMLINK_NOFOLLOW) }, allow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return wrong("stat", name, err)
	}
	w.entry.Name = name
	if err := w.visit(&w.entry); err != nil {
		if errors.Is(err, fs.SkipDir) && w.entry.IsFolder() {
			return nil
		}
		return err
	}
	if !w.entry.IsFolder() {
		return nil
	}
	if len(w.levels) > MaxDepth {
		return ErrDeep
	}
	fd := -1
	open := func() (err error) { fd, err = unix.Openat(in, name, opening, 0); return err }
	switch err := permitted(open, func() { allow(); unlock(in, name) }); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // the entry has just been removed or replaced
	case err != nil:
		return wrong("open", name, err)
	}
	return w.push(name, fd)
}

// leave returns to the parent folder.
func (w *walker) leave() error {
	last := len(w.levels) - 1
	fd := w.levels[last].fd
	defer unix.Close(fd)
	w.levels = w.levels[:last]
	if last == 0 || w.closed < last {
		return nil
	}
	above, up := &w.levels[last-1], -1
	open := func() (err error) { up, err = unix.Openat(fd, "..", opening, 0); return err }
	err := permitted(open, func() { unix.Fchmod(fd, 0o700); above.unlockFrom(fd) })
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return wrong("open", above.name, err)
	}
	above.fd, w.closed = up, w.closed-1
	if id, err := identify(up); err != nil || id != above.id {
		return errors.Join(errMoved, err)
	}
	if _, err := unix.Seek(up, above.offset, unix.SEEK_SET); err != nil {
		return wrong("seek", above.name, err)
	}
	return nil
}

// unlockFrom adds permissions to the parent of an open folder, if it is still the folder of this level.
func (l *level) unlockFrom(below int) {
	var s unix.Stat_t
	if unix.Fstatat(below, "..", &s, unix.AT_SYMLINK_NOFOLLOW) == nil && l.id == (identity{uint64(s.Dev), s.Ino}) { //nolint:unconvert // as in identify
		unlock(below, "..")
	}
}

func (w *walker) close() {
	for _, l := range w.levels[w.closed:] {
		unix.Close(l.fd)
	}
}

// attempts bounds how often a folder is given permissions, in case a program keeps removing them.
const attempts = 3

// permitted calls do. As long as do fails for lack of permissions, permitted adds them with unlock and calls do
// again, at most attempts times and at once, because the walk does not return to the entry later.
func permitted(do func() error, unlock func()) (err error) {
	for range attempts {
		if err = retry(do); !errors.Is(err, fs.ErrPermission) {
			return err
		}
		unlock()
	}
	return err
}

// retry repeats do while a signal interrupts it.
func retry(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func wrong(what, name string, err error) error {
	return &fs.PathError{Op: what, Path: name, Err: err}
}
