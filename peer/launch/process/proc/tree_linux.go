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

// errHidden is the error for files that this peer cannot inspect. A process that hides files exceeds its
// limits.
var errHidden = errors.New("it hides its files")

// An inspection adds up what processes use.
type inspection struct {
	Tree
	folder string // working folder of the processes
	device uint64 // disk of that folder
	seen   map[file]bool
	mapped []remnant
}

// A remnant is a deleted file that may still be mapped.
type remnant struct {
	file file
	link string // link to it, which may need privileges to follow
}

// Inspect inspects the given processes. Processes that end meanwhile count as nothing. With nameless, it
// also counts the deleted files on the disk of folder that the processes still use: open, mapped, executed,
// or as a working folder. It returns an error if a process hides such files from this peer.
func Inspect(pids []int, folder string, nameless bool) (Tree, error) {
	i := &inspection{folder: folder, seen: make(map[file]bool)}
	var disk syscall.Stat_t
	if syscall.Stat(folder, &disk) != nil {
		nameless = false // the folder does not exist any more
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

// living returns the /proc folder and the status file of a process, or nothing if it has ended. If the main
// thread has ended, living uses another thread, which shares the same resources.
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

// lookAtOpen counts the open files of a process.
func (i *inspection) lookAtOpen(proc string) error {
	n := int64(0)
	err := eachOpen(proc, func(link string) {
		n++
		i.count(link)
	})
	i.Files = max(i.Files, n)
	return err
}

// count counts a file that is deleted and was not counted yet.
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

// lookAtMapped records mapped files that may be deleted.
func (i *inspection) lookAtMapped(proc string) error {
	return eachMapping(proc, func(m mapping) {
		if !m.deleted() {
			return
		}
		// Some file systems use a separate device for each of their parts, and show another device here.
		if m.file.device == i.device || bytes.HasPrefix(m.name, []byte(i.folder+"/")) {
			i.mapped = append(i.mapped, remnant{file{i.device, m.file.number}, m.link(proc)})
		}
	})
}

// countMapped counts files that are mapped and not open. Only a peer that runs as root can inspect them.
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

// field returns a number from a status file.
func field(status []byte, name string) int64 {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if fields := bytes.Fields(line); ok && len(fields) > 0 {
		n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		return n
	}
	return 0
}

// mostFiles is the number of free inodes assumed where the file system reports no limit.
const mostFiles = 1 << 40

// FreeBytes returns the free bytes on the disk of a folder. Empty files need space too: each free inode
// counts least bytes.
func FreeBytes(folder string, least int64) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	files := min(s.Ffree, mostFiles)
	return int64(s.Bfree)*int64(s.Bsize) + int64(files)*least //nolint:unconvert // of 32 bits elsewhere
}
