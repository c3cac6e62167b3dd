package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A tree is what some processes have, as /proc tells.
type tree struct {
	memory   int64 // bytes, private ones, and those shared of that process that has most
	threads  int64
	files    int64 // of that process that has the most open
	nameless int64 // bytes on disk of files that are open and have no name any more
}

// treeUsage looks at some processes. Those that end meanwhile have nothing.
func treeUsage(pids []int, folder string) (t tree) {
	var disk syscall.Stat_t
	known := syscall.Stat(folder, &disk) == nil
	seen := make(map[uint64]bool)
	var shared int64
	for _, pid := range pids {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		status, _ := os.ReadFile(filepath.Join(proc, "status"))
		t.memory += field(status, "RssAnon:") << 10
		shared = max(shared, field(status, "RssShmem:")<<10)
		t.threads += field(status, "Threads:")
		files, _ := os.ReadDir(filepath.Join(proc, "fd"))
		t.files = max(t.files, int64(len(files)))
		for _, f := range files {
			var s syscall.Stat_t
			if !known || syscall.Stat(filepath.Join(proc, "fd", f.Name()), &s) != nil {
				continue
			}
			if s.Nlink == 0 && s.Dev == disk.Dev && s.Mode&syscall.S_IFMT == syscall.S_IFREG && !seen[s.Ino] {
				seen[s.Ino] = true
				t.nameless += s.Blocks * 512
			}
		}
	}
	t.memory += shared
	return t
}

// field returns a number of a status file.
func field(status []byte, name string) int64 {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name))
	if fields := bytes.Fields(rest); ok && len(fields) > 0 {
		n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		return n
	}
	return 0
}

// freeBytes returns how much is free on the disk of a folder.
func freeBytes(folder string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	return int64(s.Bfree) * int64(s.Bsize) //nolint:unconvert // of 32 bits elsewhere
}

// isStopped reports whether a process stands still already, as its own program wants it.
func isStopped(pid int) bool {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	return bytes.Contains(status, []byte("\nState:\tT"))
}
