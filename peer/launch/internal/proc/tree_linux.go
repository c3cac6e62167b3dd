package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// errHidden is of files that nobody may look at. Who hides them exceeds his limits.
var errHidden = errors.New("it hides what it has on disk")

// An inspection looks at processes one after another.
type inspection struct {
	Tree
	folder string // that they work in
	device uint64 // its disk
	seen   map[file]bool
	mapped []remnant
}

// A remnant is a file without a name.
type remnant struct {
	file file
	link string // that leads to it, for who may go there
}

// Inspect looks at some processes. Those that end meanwhile have nothing. With nameless it also
// looks for the files that they have on the disk of folder, and no name leads to: such as are open,
// mapped, run, or worked in. Who hides them from this peer is an error.
func Inspect(pids []int, folder string, nameless bool) (Tree, error) {
	i := &inspection{folder: folder, seen: make(map[file]bool)}
	var disk syscall.Stat_t
	if syscall.Stat(folder, &disk) != nil {
		nameless = false // there is none any more
	}
	i.device = disk.Dev
	for _, pid := range pids {
		proc, status := living(pid)
		if proc == "" {
			continue
		}
		i.Threads += field(status, "Threads:")
		err := i.lookAtOpen(proc)
		if nameless && err == nil {
			i.count(filepath.Join(proc, "cwd"))
			i.count(filepath.Join(proc, "exe"))
			err = i.lookAtMapped(proc)
		}
		if errors.Is(err, fs.ErrPermission) {
			if proc, _ = living(pid); proc != "" {
				return i.Tree, fmt.Errorf("%w: %w", errHidden, err)
			}
		}
	}
	return i.Tree, i.countMapped()
}

// living returns where /proc tells of a process, and its status; nothing if it has ended. Where its
// first thread has, another is asked: all of a process share what is looked at.
func living(pid int) (proc string, status []byte) {
	ask := func(thread string) bool {
		proc = filepath.Join("/proc", thread)
		status, _ = os.ReadFile(filepath.Join(proc, "status"))
		return bytes.Contains(status, []byte("\nVmRSS:"))
	}
	if ask(strconv.Itoa(pid)) {
		return proc, status
	}
	threads, _ := os.ReadDir(filepath.Join(proc, "task"))
	for _, t := range threads {
		if ask(t.Name()) {
			return proc, status
		}
	}
	return "", nil
}

// lookAtOpen counts what a process has open.
func (i *inspection) lookAtOpen(proc string) error {
	n := int64(0)
	err := eachOpen(proc, func(link string) {
		n++
		i.count(link)
	})
	i.Files = max(i.Files, n)
	return err
}

// count counts a file that has no name and was not seen yet.
func (i *inspection) count(link string) (err error) {
	var s syscall.Stat_t
	if err := syscall.Stat(link, &s); err != nil || s.Nlink > 0 {
		return err
	}
	f := file{s.Dev, s.Ino}
	if i.seen[f] {
		return nil
	}
	i.seen[f] = true
	if s.Dev == i.device {
		i.Nameless += s.Blocks * 512
	}
	return nil
}

// lookAtMapped remembers what a process has mapped that may be nowhere else.
func (i *inspection) lookAtMapped(proc string) error {
	return eachMapping(proc, func(m mapping) {
		if !m.deleted() {
			return
		}
		// File systems that make a device of each of their parts tell another one here.
		if m.file.device == i.device || bytes.HasPrefix(m.name, []byte(i.folder+"/")) {
			i.mapped = append(i.mapped, remnant{file{i.device, m.file.number}, m.link(proc)})
		}
	})
}

// countMapped counts what is mapped and not open. Only a peer that is root may look at that.
func (i *inspection) countMapped() error {
	for _, m := range i.mapped {
		if i.seen[m.file] {
			continue
		}
		if err := i.count(m.link); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: it has mapped a file that has no name and is not open", errHidden)
		}
	}
	return nil
}

// field returns a number of a status file.
func field(status []byte, name string) int64 {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if fields := bytes.Fields(line); ok && len(fields) > 0 {
		n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		return n
	}
	return 0
}

// mostFiles is what can still be made of files where the file system says that there is no end of them.
const mostFiles = 1 << 40

// FreeBytes returns how many bytes are free on the disk of a folder. Files that are empty take
// something, too: each that can still be made counts least bytes.
func FreeBytes(folder string, least int64) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	files := min(s.Ffree, mostFiles)
	return int64(s.Bfree)*int64(s.Bsize) + int64(files)*least //nolint:unconvert // of 32 bits elsewhere
}
