package launch

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// Enforcement of the resources that the owner grants a job.
//
//	kernel:  memory, processors, number    control groups (package confine/cgroup)
//	         open files, size of one file  resource limits, which the supervisor sets
//	guard:   disk, time                    measured, more often the less is left (guard.go)
//	         memory, number                where there are no control groups
//	runner:  disk of a module              each write counts (package module/wasm)
//	pace.go: upload

// makeGroup creates the control group of the job, if the grant has a limit that the group can enforce. The
// group's weight corresponds to the niceness of its processes.
func (c *confinement) makeGroup() (err error) {
	slot, job := c.grant.Slot, c.grant.Job
	if slot.Memory+slot.CPU+slot.Processes+job.Memory+job.CPU+job.Processes == 0 {
		return nil
	}
	q := cgroup.Quota{Memory: job.Memory, CPU: c.processors(), Processes: job.Processes}
	if c.group, err = c.groups.NewJob(c.job, q); err != nil {
		return err
	}
	return c.group.SetPriority(cgroup.Priority{Weight: c.weight()})
}

// processors returns the CPU limit of all processes here together, in percent of one processor; 0 means no
// limit.
func (c *confinement) processors() int64 {
	return limits.Min(limits.Limits{CPU: c.grant.Slot.CPU * int64(c.processes)}, c.grant.Job).CPU
}

// weight returns the weight of the job's control group, which is that of its processes together.
func (c *confinement) weight() int64 { return weightOf(c.niceness) * int64(c.processes) }

// lowerPriority sets the weight of the job's control group, and makes the group idle if its processes have
// the highest niceness. It is called only once the processes run: their startup runs in the group too, and
// must finish in time.
func (c *confinement) lowerPriority() error {
	if c.group == nil {
		return nil
	}
	return c.group.SetPriority(cgroup.Priority{Weight: c.weight(), Idle: c.niceness == MostNiceness})
}

// raisePriority raises the priority of the job's control group so that killed processes exit soon, even
// while the owner's work occupies all processors. It must be called only after all processes in the group
// were killed.
func (c *confinement) raisePriority() {
	if c.group != nil {
		c.group.RestoreWeight()
	}
}

// MostNiceness is the kernel's highest nice value. The control group of a job with this niceness is idle.
const MostNiceness = 19

// weightOf returns the weight of a process with the given niceness. As in the kernel, it is 1024 at
// niceness 0, and each step divides it by 1.25.
func weightOf(niceness int) int64 {
	return int64(math.Round(1024 / math.Pow(1.25, float64(niceness))))
}

// confine creates the control group of a process and returns the limits that the kernel enforces on its
// program. name identifies the process, or the compiler.
func (c *confinement) confine(name string) (group *cgroup.Group, l supervisor.Limits, err error) {
	slot := c.grant.Slot
	l.Niceness = c.niceness
	l.Files = uint64(slot.Files)
	l.FileSize = uint64(slot.Disk + slot.Disk/32) // slightly more than the limit, so that the guard can see the excess
	if c.groups.Missing(cgroup.Memory) != nil && slot.Memory > 0 {
		l.Data = uint64(slot.Memory + slot.Memory/4 + dataSlack)
	}
	if most := limits.Min(slot, c.grant.Job).Processes; most > 0 {
		l.Processes = uint64(most + processSlack)
	}
	if c.group == nil {
		return nil, l, nil
	}
	if group, err = c.group.NewProcess(name, cgroup.Quota{Memory: slot.Memory, Processes: slot.Processes}); err != nil {
		return nil, l, err
	}
	l.Groups, l.Jobs, l.Back = group.Folders(), c.group.Folders(), c.groups.Home()
	return group, l, nil
}

// dataSlack is the memory, in bytes, that a program may have beyond its limit. It covers the time until the
// guard notices, and the private memory that Go's runtime reserves and does not use.
const dataSlack = 256 << 20

// processSlack is the number of tasks that a program may start beyond its limit. It covers the time until
// the guard counts, and the supervisor's threads.
const processSlack = 64

// exceed ends a process that exceeds a limit.
func (p *process) exceed(x limits.Excess) {
	if p.reason == "" && p.exit == nil {
		p.excess = x.Kind
		p.job.log.Warn().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Stringer("submitter", p.job.submitter).
			Str("limit", string(x.Kind)).Int64("most", x.Limit).Int64("used", x.Used).Msg("a process has exceeded a limit")
		p.end(x.String())
	}
}

// exceed ends all processes of a job that exceeds a limit.
func (s *processSet) exceed(x limits.Excess) {
	for _, id := range s.order {
		s.local[id].exceed(x)
	}
}

// endedByLimit reports whether a process ended because of a limit. Either the kernel killed it, or it refused
// the process a resource that the process needed.
func (p *process) endedByLimit(e supervisor.Exit) (limits.Excess, bool) {
	if e.Code == 0 && e.Signal == "" {
		return limits.Excess{}, false
	}
	var u limits.Usage
	if p.job.service.groups.Missing(cgroup.Memory) != nil {
		u.Memory = e.Memory // the kernel may have refused it more before the guard measured
	}
	if p.job.grant.Slot.Disk > 0 { // a process stopped by the file size limit has used that much
		u.Disk, _ = scratch.Measure(p.job.folder.Process(p.id), p.finalRuler(time.Now))
	}
	if g := p.live.group; g != nil {
		r := p.job.confinement.refusals(g)
		u.Killed, u.Refused, u.Full, u.Memory, u.Processes = r.Killed, r.Refused, r.Full, max(u.Memory, r.Memory), r.Processes
	}
	return p.job.grant.Exceeded(u)
}

// finalMeasureTimeout bounds the measurement of the files that an ended process has left behind. The
// failover of its rank waits for the result.
const finalMeasureTimeout = 300 * time.Millisecond

var errFinalMeasureTimeout = errors.New("the measurement takes too long")

// finalRuler returns a ruler that measures the disk usage of a process for finalMeasureTimeout at most. What
// it has found by then counts.
func (p *process) finalRuler(now func() time.Time) scratch.Ruler {
	until := now().Add(finalMeasureTimeout)
	return scratch.Ruler{
		Least: scratch.LeastEntry(string(p.job.folder)), Most: 2 * p.job.grant.Slot.Disk,
		Pause: func() error {
			if now().After(until) {
				return errFinalMeasureTimeout
			}
			return nil
		},
	}
}

// refusals returns how the kernel has enforced the limits of a process's group and of its job's group, and
// the peak usage of the process.
func (c *confinement) refusals(g *cgroup.Group) limits.Usage {
	u := g.Usage()
	return limits.Usage{
		Killed: u.Killed > 0, Refused: u.Refused > 0, Full: u.Short == 0 && c.group.Usage().Short > 0,
		Memory: u.MostMemory, Processes: u.MostProcesses,
	}
}

// nameLimit adds a limit that the kernel has enforced in a process's group to the error of its start.
func (c *confinement) nameLimit(g *cgroup.Group, err error) error {
	if x, exceeded := c.grant.Exceeded(c.refusals(g)); exceeded {
		return fmt.Errorf("%v: %w", x, err)
	}
	return err
}

// freeProgram is the program size, in bytes, that is allowed in any case, since the program does not count
// towards a slot's disk usage.
const freeProgram = 256 << 20

// checkInputs returns an error if the job's program and inputs do not fit into the disk limits of the given
// number of processes.
func (c *confinement) checkInputs(inputs filetransfer.Manifest, processes int) error {
	size, least := int64(0), scratch.LeastEntry(string(c.folder))
	for _, f := range inputs {
		size += max(f.Size, least)
	}
	slot, job := c.grant.Slot.Exceeded, c.grant.Job.Exceeded
	if x, exceeded := slot(limits.Usage{Disk: size}); exceeded {
		return fmt.Errorf("the input files: %v", x)
	}
	if x, exceeded := slot(limits.Usage{Disk: c.program}); exceeded && c.program > freeProgram {
		return fmt.Errorf("the program: %v", x)
	}
	if x, exceeded := job(limits.Usage{Disk: c.program + size*int64(processes)}); exceeded {
		x.Job = true
		return fmt.Errorf("program and input files: %v", x)
	}
	return nil
}
