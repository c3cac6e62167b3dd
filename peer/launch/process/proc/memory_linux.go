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

// TouchedBy returns the private memory of the processes plus the shared memory in their page tables, in
// bytes. Shared memory counts for each process. The result is approximate, and fast.
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

// MemoryOf returns the memory of the processes. Private memory that several processes share, as after a
// fork, counts for each of them. With divided, each gets its part instead, which takes the kernel long to
// compute.
//
// Shared memory occupies pages even if they are in no process's page tables: a process may have released
// them (MADV_DONTNEED), or may only have written to the file. MemoryOf therefore counts the files, each
// once.
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
		// An error of either means that the process has ended, or that it hides files, which Inspect
		// reports.
		_ = eachOpen(proc, func(link string) { s.measure(link) })
		_ = s.lookAtMapped(proc)
	}
	return s.Memory
}

// A survey adds up the memory of processes.
type survey struct {
	Memory
	exact map[file]bool // files whose size in shared is exact
}

// measure counts a file if it is in memory, and reports whether it could access the file.
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

// An extent is a mapped part of a file, in bytes.
type extent struct{ from, to uint64 }

// lookAtMapped counts shared memory that a process has mapped and no process has open. Only a peer that
// runs as root can see its size; for other peers, the mapped part counts.
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

// union returns the number of bytes covered by the extents.
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

// memoryDevice returns the device of anonymous shared memory and of in-memory files; the kernel uses one
// device for all. The name of a mapping is no evidence, since a process can choose it
// (PR_SET_VMA_ANON_NAME).
var memoryDevice = sync.OnceValue(func() uint64 {
	var s unix.Stat_t
	fd, err := unix.MemfdCreate("p2pmpi", unix.MFD_CLOEXEC)
	if err != nil {
		return math.MaxUint64 // no file is on this device
	}
	defer unix.Close(fd)
	_ = unix.Fstat(fd, &s)
	return s.Dev
})
