package launch

import "time"

// A memory is what some processes have of it.
type memory struct {
	own     int64          // private bytes, those in swap too
	touched int64          // bytes of shared memory that are in their tables: a part of shared
	shared  map[file]int64 // bytes of each shared memory, and file in memory, that they have mapped or open
}

// A file is one by its device and number, whatever it is called.
type file struct{ device, number uint64 }

// total counts what is shared once.
func (m memory) total() int64 {
	sum := m.own
	for _, n := range m.shared {
		sum += n
	}
	return sum
}

// unseen is what a hasty look overlooks: shared memory that no process has in its tables.
func (m memory) unseen() int64 { return max(0, m.total()-m.own-m.touched) }

// sharedMemoryOf returns what some processes have; what they have in common counts once.
func sharedMemoryOf(pids []int) int64 { return memoryOf(pids, true).total() }

// watchMemory looks hastily at the memory of all processes.
func (g *guard) watchMemory() {
	begun := time.Now()
	all := g.processes()
	for m, pids := range all {
		if m.usage.Memory = 0; m.process.ctx.Err() == nil {
			m.usage.Memory = touchedBy(pids) + m.unseen
		}
	}
	g.share(all)
	g.judge(notKnown)
	g.memory = after(max(memoryEvery, urgentShare*time.Since(begun)))
}

// share has memory that several processes have in common count once, where that decides: it
// takes the kernel long to tell.
func (g *guard) share(all map[*meter][]int) {
	if !g.watchesMemory() {
		return
	}
	over, sum := false, int64(0)
	for m := range all {
		sum += m.usage.Memory
		over = over || exceeds(m.usage.Memory, g.job.grant.Slot.Memory)
	}
	if !over && !exceeds(sum, g.job.grant.Job.Memory) {
		return
	}
	have := make(map[*meter]memory)
	for m, pids := range all {
		have[m] = memoryOf(pids, true)
		m.unseen = have[m].unseen()
	}
	for m, bytes := range parts(have) {
		m.usage.Memory = bytes
	}
}

// parts divides what several have in common among them.
func parts[K comparable](have map[K]memory) map[K]int64 {
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

func exceeds(used, limit int64) bool { return limit > 0 && used > limit }
