package peer

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pbnjay/memory"
	"golang.org/x/sys/unix"
)

// diskFree returns how many bytes are free where dir is, or will be; -1 if that is not known.
func diskFree(dir string) int64 {
	var s unix.Statfs_t
	for unix.Statfs(dir, &s) != nil {
		if dir == filepath.Dir(dir) {
			return -1
		}
		dir = filepath.Dir(dir)
	}
	return int64(s.Bavail * uint64(s.Bsize))
}

// openFiles returns how many files this process may have open.
func openFiles() uint64 { return rlimit(unix.RLIMIT_NOFILE) }

// processes returns how many processes and threads the user, or the control group, may have.
func processes() uint64 {
	return min(rlimit(unix.RLIMIT_NPROC), groupLimit("/", "pids", "pids.max", "pids.max"))
}

// memoryLimit returns how many bytes the machine, or the control group, has.
func memoryLimit() uint64 {
	return min(memory.TotalMemory(), groupLimit("/", "memory", "memory.max", "memory.limit_in_bytes"))
}

// rlimit returns a limit of this process. RLIM_INFINITY is unlimited, and so is what is not known.
func rlimit(resource int) uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil {
		return unlimited
	}
	return l.Cur
}

// groupLimit returns the least limit that the control groups of this process, and those above
// them, set. Its name is file in version 2 of control groups, and old in version 1, where the
// controller has a folder of its own. All files are looked for below root.
func groupLimit(root, controller, file, old string) uint64 {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	least := uint64(unlimited)
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
