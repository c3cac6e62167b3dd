package proc

// A Memory is what some processes have of it.
type Memory struct {
	own     int64          // private bytes, those in swap too
	touched int64          // bytes of shared memory that are in their tables: a part of shared
	shared  map[file]int64 // bytes of each shared memory, and file in memory, that they have mapped or open
}

// A file is one by its device and number, whatever it is called.
type file struct{ device, number uint64 }

// Total is all of it, in bytes; it counts what is shared once.
func (m Memory) Total() int64 {
	sum := m.own
	for _, n := range m.shared {
		sum += n
	}
	return sum
}

// Unseen is what a hasty look overlooks: shared memory that no process has in its tables.
func (m Memory) Unseen() int64 { return max(0, m.Total()-m.own-m.touched) }

// SharedMemoryOf returns how many bytes some processes have; what they have in common counts once.
func SharedMemoryOf(pids []int) int64 { return MemoryOf(pids, true).Total() }

// Parts divides what several have in common among them: what each has then, in bytes.
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
