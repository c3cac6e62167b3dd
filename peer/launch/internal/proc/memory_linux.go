package proc

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// TouchedBy returns the private memory of some processes, and the shared memory that is in their
// tables, of each that has it: a hasty look. In bytes.
func TouchedBy(pids []int) (sum int64) {
	for _, pid := range pids {
		_, status := living(pid)
		sum += privateOf(status) + field(status, "RssShmem:")<<10
	}
	return sum
}

func privateOf(status []byte) int64 {
	return (field(status, "RssAnon:") + field(status, "VmSwap:")) << 10
}

// MemoryOf returns what some processes have. Private memory that several have in common, as a child
// has its parent's, counts for each; with divided, for each its part, which takes the kernel long to tell.
//
// Shared memory has pages whether or not a process has them in its tables: it may have let go of them
// (MADV_DONTNEED), or only have written to the file. So it is the files that count, each once.
func MemoryOf(pids []int, divided bool) Memory {
	s := &survey{Memory: Memory{shared: make(map[file]int64)}, exact: make(map[file]bool)}
	for _, pid := range pids {
		proc, status := living(pid)
		if proc == "" {
			continue
		}
		private := privateOf(status)
		if divided {
			if rollup, err := os.ReadFile(filepath.Join(proc, "smaps_rollup")); err == nil {
				private = (field(rollup, "Pss_Anon:") + field(rollup, "SwapPss:")) << 10
			}
		}
		s.own += private
		s.touched += field(status, "RssShmem:") << 10
		// An error of either means that it has ended, or Inspect says that it hides.
		_ = eachOpen(proc, func(link string) { s.measure(link) })
		_ = s.lookAtMapped(proc)
	}
	return s.Memory
}

// A survey looks at the memory of processes one after another.
type survey struct {
	Memory
	exact map[file]bool // what of shared is known, and not supposed
}

// measure counts a file if it is in memory, and reports whether it could be looked at.
func (s *survey) measure(link string) bool {
	var is syscall.Stat_t
	if syscall.Stat(link, &is) != nil {
		return false
	}
	if is.Dev == memoryDevice() {
		f := file{is.Dev, is.Ino}
		s.shared[f], s.exact[f] = is.Blocks*512, true
	}
	return true
}

// An extent is a part of a file that is mapped, in bytes.
type extent struct{ from, to uint64 }

// lookAtMapped counts shared memory that a process has mapped, and nobody has open. Only a peer that is
// root may see how much it is: to others it is as large as what of it is mapped.
func (s *survey) lookAtMapped(proc string) error {
	extents := make(map[file][]extent)
	err := eachMapping(proc, func(m mapping) {
		f := m.file
		if f.device != memoryDevice() || s.exact[f] || extents[f] == nil && s.measure(m.link(proc)) {
			return
		}
		extents[f] = append(extents[f], extent{m.offset, m.offset + m.length()})
	})
	for f, all := range extents {
		s.shared[f] = max(s.shared[f], union(all))
	}
	return err
}

// union is how many bytes are in some extents, each counted once.
func union(all []extent) (sum int64) {
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	end := uint64(0)
	for _, e := range all {
		if e.to > end {
			sum += int64(e.to - max(e.from, end))
			end = e.to
		}
	}
	return sum
}

// memoryDevice is that of shared memory without a name, and of files in memory: the kernel has one for
// all. A mapping can be called anything (PR_SET_VMA_ANON_NAME).
var memoryDevice = sync.OnceValue(func() uint64 {
	var s unix.Stat_t
	fd, err := unix.MemfdCreate("p2pmpi", unix.MFD_CLOEXEC)
	if err != nil {
		return math.MaxUint64 // nothing is on it
	}
	defer unix.Close(fd)
	_ = unix.Fstat(fd, &s)
	return s.Dev
})
