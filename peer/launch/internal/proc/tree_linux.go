package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// errHidden is of files that nobody may look at. Who hides them exceeds his limits.
var errHidden = errors.New("it hides what it has on disk")

// An inspection looks at processes one after another.
type inspection struct {
	Tree
	folder string // that they work in
	device uint64 // its disk
	seen   map[file]bool
	mapped []mapping
}

// A mapping is of a file without a name.
type mapping struct {
	file file
	path string // that leads to it, for who may go there
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
	folder, err := os.Open(filepath.Join(proc, "fd"))
	if err != nil {
		return err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	i.Files = max(i.Files, int64(len(names)))
	for _, name := range names {
		i.count(filepath.Join(proc, "fd", name))
	}
	return nil
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

// deleted ends a line of /proc/PID/maps of a file that has lost the name that it was opened by.
const deleted = " (deleted)"

// lookAtMapped remembers what a process has mapped that may be nowhere else.
func (i *inspection) lookAtMapped(proc string) error {
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(maps) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !bytes.HasSuffix(line, []byte(deleted)) {
			continue
		}
		// from-to rwxp offset major:minor inode path
		fields := bytes.Fields(line)
		if len(fields) < 6 {
			continue
		}
		ino, _ := strconv.ParseUint(string(fields[4]), 10, 64)
		device := device(string(fields[3]))
		_, path, _ := bytes.Cut(line, []byte("/"))
		// File systems that make a device of each of their parts tell another one here.
		if device == i.device || strings.HasPrefix("/"+string(path), i.folder+"/") {
			i.mapped = append(i.mapped, mapping{file{i.device, ino}, filepath.Join(proc, "map_files", span(string(fields[0])))})
		}
	}
	return nil
}

// device reads a device as /proc/PID/maps writes it.
func device(text string) uint64 {
	major, minor, _ := strings.Cut(text, ":")
	a, _ := strconv.ParseUint(major, 16, 32)
	b, _ := strconv.ParseUint(minor, 16, 32)
	return unix.Mkdev(uint32(a), uint32(b))
}

// span is what a mapping is called in map_files: there are no zeros before its addresses.
func span(text string) string {
	from, to, _ := strings.Cut(text, "-")
	trim := func(s string) string { return strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:] }
	if from == "" || to == "" {
		return text
	}
	return trim(from) + "-" + trim(to)
}

// countMapped counts what is mapped and not open. Only a peer that is root may look at that.
func (i *inspection) countMapped() error {
	for _, m := range i.mapped {
		if i.seen[m.file] {
			continue
		}
		if err := i.count(m.path); errors.Is(err, fs.ErrPermission) {
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

// leastFile is what each file takes that can still be made, in bytes, as package scratch counts.
// Some file systems say that there is no end of them.
const (
	leastFile = 4 << 10
	mostFiles = 1 << 40
)

// FreeBytes returns how many bytes are free on the disk of a folder. Files that are empty take
// something, too.
func FreeBytes(folder string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	files := min(s.Ffree, mostFiles)
	return int64(s.Bfree)*int64(s.Bsize) + int64(files)*leastFile //nolint:unconvert // of 32 bits elsewhere
}
