package proc

// A Memory is the memory of a set of processes.
type Memory struct {
	own     int64          // private bytes, including swap
	touched int64          // bytes of shared memory in their page tables: a part of shared
	shared  map[file]int64 // bytes of each shared memory object and in-memory file that they have mapped or open
}

// A file identifies a file by device and inode number.
type file struct{ device, number uint64 }

// Total returns all of the memory, in bytes. Shared memory counts once.
func (m Memory) Total() int64 {
	sum := m.own
	for _, n := range m.shared {
		sum += n
	}
	return sum
}

// Unseen returns the bytes that TouchedBy overlooks: shared memory in no process's page tables.
func (m Memory) Unseen() int64 { return max(0, m.Total()-m.own-m.touched) }

// SharedMemoryOf returns the memory of the processes, in bytes. Memory that they share counts once.
func SharedMemoryOf(pids []int) int64 { return MemoryOf(pids, true).Total() }

// Parts divides shared memory among the sets that share it, and returns the bytes of each set.
func Parts[K comparable](have map[K]Memory) map[K]int64 {
	sharers := make(map[file]int64)
	for _, m := range have {
		for f := range m.shared {
			sharers[f]++
		}
	}
	out := make(map[K]int64)
	for k, m := range have {
		out[k] = m.own
		for f, n := range m.shared {
			out[k] += n / sharers[f]
		}
	}
	return out
}
