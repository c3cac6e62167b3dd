package launch

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// What the owner grants a job, and how it is held to that.
//
//	kernel: memory, processors, number    control groups (package internal/cgroup)
//	        open files, size of one file  resource limits, which the supervisor sets
//	guard:  disk, time                    measured, the oftener the less is left (guard.go)
//	        memory, number                where there are no control groups
//	pace.go: upload

// makeGroup makes the control group of the job, if something is granted that it can hold. It has
// the weight of the processes' niceness.
func (j *job) makeGroup() (err error) {
	slot, job := j.grant.Slot, j.grant.Job
	if slot.Memory+slot.CPU+slot.Processes+job.Memory+job.CPU+job.Processes == 0 {
		return nil
	}
	q := cgroup.Quota{Memory: job.Memory, CPU: j.processors(), Processes: job.Processes}
	if j.group, err = j.service.groups.NewJob(j.spec.ID, q); err != nil {
		return err
	}
	return j.group.GiveWay(cgroup.Precedence{Weight: j.weight()})
}

// processors returns the share of the processors that the processes here may use together, in percent of one
// processor; 0: no limit.
func (j *job) processors() int64 {
	return limits.Min(limits.Limits{CPU: j.grant.Slot.CPU * int64(len(j.order))}, j.grant.Job).CPU
}

// weight is that of the job's control group: of as many processes as run here.
func (j *job) weight() int64 { return weightOf(j.service.config.Niceness) * int64(len(j.order)) }

// yield has the job let all others go first, if its processes are as nice as can be. Before they run
// it does not: what starts them runs there too, and has to be done in time.
func (j *job) yield() error {
	if j.group == nil {
		return nil
	}
	return j.group.GiveWay(cgroup.Precedence{Weight: j.weight(), Idle: j.service.config.Niceness == MostNiceness})
}

// hurry has what was killed in the job's group be gone soon, also where the owner needs all processors. Nobody
// computes there any more.
func (j *job) hurry() {
	if j.group != nil {
		j.group.Hurry()
	}
}

// MostNiceness is the kernel's. Of those whose programs have it, a control group is idle.
const MostNiceness = 19

// weightOf is that of a process of a niceness, as the kernel has it: 1024 without any, a quarter
// more or less for each step.
func weightOf(niceness int) int64 {
	return int64(math.Round(1024 / math.Pow(1.25, float64(niceness))))
}

// confine makes the control group of a process and returns what the kernel is to hold its
// program to. name is that of the process, or of the compiler.
func (j *job) confine(name string) (group *cgroup.Group, l supervisor.Limits, err error) {
	slot := j.grant.Slot
	l.Niceness = j.service.config.Niceness
	l.Files = uint64(slot.Files)
	l.FileSize = uint64(slot.Disk + slot.Disk/32) // so that it is seen that there is too much
	if j.service.groups.Missing(cgroup.Memory) != nil && slot.Memory > 0 {
		l.Data = uint64(slot.Memory + slot.Memory/4 + dataSlack)
	}
	if most := limits.Min(slot, j.grant.Job).Processes; most > 0 {
		l.Processes = uint64(most + processSlack)
	}
	if j.group == nil {
		return nil, l, nil
	}
	if group, err = j.group.NewProcess(name, cgroup.Quota{Memory: slot.Memory, Processes: slot.Processes}); err != nil {
		return nil, l, err
	}
	l.Groups, l.Jobs, l.Back = group.Folders(), j.group.Folders(), j.service.groups.Home()
	return group, l, nil
}

// dataSlack is what may be had beyond the limit until the guard sees that, and what Go's
// runtime reserves of private memory and does not use.
const dataSlack = 256 << 20

// processSlack is what a program may start beyond the limit until the guard counts it, and the supervisor's threads.
const processSlack = 64

// exceed ends a process that has more than it may.
func (p *process) exceed(x limits.Excess) {
	if p.reason == "" && p.exit == nil {
		p.excess = x.Kind
		p.job.log.Warn().Int("rank", p.id.Rank).Int("replica", p.id.Replica).Stringer("submitter", p.job.submitter).
			Str("limit", string(x.Kind)).Int64("most", x.Limit).Int64("used", x.Used).Msg("a process has exceeded a limit")
		p.end(x.String())
	}
}

// exceed ends all processes of a job that has more than it may.
func (j *job) exceed(x limits.Excess) {
	for _, id := range j.order {
		j.local[id].exceed(x)
	}
}

// autopsy says whether a process has ended since it wanted more than it may: the kernel has
// ended it, or has refused it what it could not do without.
func (p *process) autopsy(e supervisor.Exit) (limits.Excess, bool) {
	if e.Code == 0 && e.Signal == "" {
		return limits.Excess{}, false
	}
	var u limits.Usage
	if p.job.service.groups.Missing(cgroup.Memory) != nil {
		u.Memory = e.Memory // it may have been refused more before anybody measured
	}
	if p.job.grant.Slot.Disk > 0 { // one that was held to the size of one file has that much
		u.Disk, _ = scratch.Measure(p.job.folder.Process(p.id), p.hasty(time.Now))
	}
	if g := p.live.group; g != nil {
		r := p.job.refusals(g)
		u.Killed, u.Refused, u.Full, u.Memory, u.Processes = r.Killed, r.Refused, r.Full, max(u.Memory, r.Memory), r.Processes
	}
	return p.job.grant.Exceeded(u)
}

// autopsyTime is how long it is looked for what a process has left: its rank fails over once it is told.
const autopsyTime = 300 * time.Millisecond

var errLate = errors.New("others wait")

// hasty measures what a process has on disk for so long only: what is found by then is what counts.
func (p *process) hasty(now func() time.Time) scratch.Ruler {
	until := now().Add(autopsyTime)
	return scratch.Ruler{
		Least: scratch.LeastEntry(string(p.job.folder)), Most: 2 * p.job.grant.Slot.Disk,
		Pause: func() error {
			if now().After(until) {
				return errLate
			}
			return nil
		},
	}
}

// refusals returns what the kernel has done to hold a process's group, or its job's, to its
// limits, and the most that the process has had.
func (j *job) refusals(g *cgroup.Group) limits.Usage {
	u := g.Usage()
	return limits.Usage{
		Killed: u.Killed > 0, Refused: u.Refused > 0, Full: u.Short == 0 && j.group.Usage().Short > 0,
		Memory: u.MostMemory, Processes: u.MostProcesses,
	}
}

// freeProgram is how large a program may be in any case, in bytes: it lies beside what a slot may have.
const freeProgram = 256 << 20

// checkInputs reports whether the job's program and inputs fit into the disk limits of so many processes.
func (j *job) checkInputs(inputs filetransfer.Manifest, processes int) error {
	size, least := int64(0), scratch.LeastEntry(string(j.folder))
	for _, f := range inputs {
		size += max(f.Size, least)
	}
	slot, job := j.grant.Slot.Exceeded, j.grant.Job.Exceeded
	if x, exceeded := slot(limits.Usage{Disk: size}); exceeded {
		return fmt.Errorf("the input files: %v", x)
	}
	if x, exceeded := slot(limits.Usage{Disk: j.program.Size}); exceeded && j.program.Size > freeProgram {
		return fmt.Errorf("the program: %v", x)
	}
	if x, exceeded := job(limits.Usage{Disk: j.program.Size + size*int64(processes)}); exceeded {
		x.Job = true
		return fmt.Errorf("program and input files: %v", x)
	}
	return nil
}
