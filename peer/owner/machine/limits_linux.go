package machine

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DiskFree returns the free bytes of the file system that holds, or will hold, dir, or -1 if the number is
// unknown.
func DiskFree(dir string) int64 {
	var s unix.Statfs_t
	for unix.Statfs(dir, &s) != nil {
		if dir == filepath.Dir(dir) {
			return -1
		}
		dir = filepath.Dir(dir)
	}
	return int64(s.Bavail * uint64(s.Bsize))
}

// OpenFiles returns the maximum number of open files of this process.
func OpenFiles() uint64 { return rlimit(unix.RLIMIT_NOFILE) }

// Processes returns the maximum number of processes and threads of the user or the control group.
func Processes() uint64 {
	return min(rlimit(unix.RLIMIT_NPROC), groupLimit("/", "pids", "pids.max", "pids.max"))
}

// TotalMemory returns the memory of the machine in bytes, or 0 if it is unknown.
func TotalMemory() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return uint64(s.Totalram) * uint64(s.Unit) //nolint:unconvert // Totalram has 32 bits on some processors
}

// Memory returns the memory of the machine or the control group, in bytes.
func Memory() uint64 {
	return min(TotalMemory(), groupLimit("/", "memory", "memory.max", "memory.limit_in_bytes"))
}

// rlimit returns a limit of this process, or Unlimited for RLIM_INFINITY or if it is not known.
func rlimit(resource int) uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil {
		return Unlimited
	}
	return l.Cur
}

// groupLimit returns the lowest limit in the control groups of this process and their ancestors. The limit
// is in the file named file in cgroup version 2, or old in version 1, where each controller has its own
// folder. All paths are relative to root.
func groupLimit(root, controller, file, old string) uint64 {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	least := uint64(Unlimited)
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		folder, name := "sys/fs/cgroup", file
		switch fields[1] {
		case "":
		case controller:
			folder, name = path.Join(folder, controller), old
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			text, _ := os.ReadFile(filepath.Join(root, folder, group, name))
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				least = min(least, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
