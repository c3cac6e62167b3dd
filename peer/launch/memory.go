package launch

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
)

// watchMemory measures the memory of all processes quickly and imprecisely.
func (g *guard) watchMemory() {
	begun := time.Now()
	all := g.processes()
	for m, pids := range all {
		if m.usage.Memory = 0; m.process.ctx.Err() == nil {
			m.usage.Memory = proc.TouchedBy(pids) + m.unseen
		}
	}
	g.countSharedOnce(all)
	g.enforce()
	g.memory = fromNow(max(memoryEvery, urgentShare*time.Since(begun)))
}

// countSharedOnce counts memory that several processes share only once. It does so only if a limit seems
// exceeded, since the kernel takes long to report shared memory.
func (g *guard) countSharedOnce(all map[*meter][]int) {
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
	have := make(map[*meter]proc.Memory)
	for m, pids := range all {
		have[m] = proc.MemoryOf(pids, true)
		m.unseen = have[m].Unseen()
	}
	for m, bytes := range proc.Parts(have) {
		m.usage.Memory = bytes
	}
}

func exceeds(used, limit int64) bool { return limit > 0 && used > limit }
