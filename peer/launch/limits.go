package launch

import (
	"fmt"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// What the owner grants a job, and how it is held to that.
//
//	kernel: memory, processors, number    control groups (package internal/cgroup)
//	        open files, size of one file  resource limits, which the supervisor sets
//	guard:  disk, time                    measured, the oftener the less is left
//	        memory, number                where there are no control groups
//	pace.go: upload

// makeGroup makes the control group of the job, if something is granted that it can hold.
func (j *job) makeGroup() (err error) {
	slot, job := j.grant.Slot, j.grant.Job
	if slot.Memory+slot.CPU+slot.Processes+job.Memory+job.CPU+job.Processes == 0 {
		return nil
	}
	q := cgroup.Quota{Memory: job.Memory, CPU: limits.Min(limits.Limits{CPU: slot.CPU * int64(len(j.order))}, job).CPU, Processes: job.Processes}
	j.group, err = j.service.groups.NewJob(j.spec.ID, q, len(j.order))
	return err
}

// confineProcess makes the control group of a process and returns what the kernel is to hold its
// program to.
func (j *job) confineProcess(p view.Process) (group *cgroup.Group, l supervisor.Limits, err error) {
	slot := j.grant.Slot
	l.Files = uint64(slot.Files)
	l.FileSize = uint64(slot.Disk + slot.Disk/32) // so that it is seen that there is too much
	if j.service.groups.Missing(cgroup.Memory) != nil && slot.Memory > 0 {
		l.Data = uint64(slot.Memory + dataSlack)
	}
	if j.group == nil {
		return nil, l, nil
	}
	if group, err = j.group.NewProcess(p.String(), cgroup.Quota{Memory: slot.Memory, Processes: slot.Processes}); err != nil {
		return nil, l, err
	}
	l.Groups, l.Jobs, l.Back = group.Folders(), j.group.Folders(), j.service.groups.Home()
	return group, l, nil
}

// dataSlack is what Go's runtime reserves of private memory and does not use.
const dataSlack = 128 << 20

// watchMemory is how often memory and number are measured where the kernel does not hold them.
const watchMemory = 50 * time.Millisecond

// A meter measures what one process has, and all that it has started.
type meter struct {
	process *process
	folder  string
	group   *cgroup.Group // nil: none
	program *supervisor.Process
	began   time.Time
}

// guard ends processes that have more than is granted, until the job ends.
func (j *job) guard(instances []*instance) {
	defer j.running.Done()
	var meters []*meter
	for i, id := range j.order {
		meters = append(meters, &meter{
			process: j.local[id], folder: j.folder.Process(id),
			group: instances[i].group, program: instances[i].program, began: time.Now(),
		})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			timer.Reset(j.measureAll(meters))
		case <-j.ctx.Done():
			return
		}
	}
}

// measureAll measures all processes and returns when to do so again.
func (j *job) measureAll(meters []*meter) time.Duration {
	begun := time.Now()
	slot, job := j.grant.Slot, j.grant.Job
	var all limits.Usage
	all.Disk, _ = scratch.Measure(j.folder.Program())
	next := limits.Latest
	left := func(l limits.Limits, u limits.Usage) {
		if l.Disk > 0 {
			next = min(next, limits.Pause(l.Disk, u.Disk))
		}
		if l.Time > 0 {
			next = min(next, max(l.Time-u.Time, limits.Soonest))
		}
		if l.Memory > 0 && j.service.groups.Missing(cgroup.Memory) != nil {
			next = min(next, watchMemory)
		}
	}
	for _, m := range meters {
		u, err := m.measure()
		all = all.Plus(u)
		if m.process.ctx.Err() != nil {
			continue // it has ended, and its files stay until they are collected
		}
		x, exceeded := j.grant.Exceeded(u)
		switch {
		case exceeded:
			j.do(func() { m.process.exceed(x) })
		case err != nil:
			j.do(func() { m.process.end(fmt.Sprintf("what it has on disk cannot be measured: %v", err)) })
		}
		left(slot, u)
	}
	if x, exceeded := job.Exceeded(all); exceeded {
		x.Job = true
		j.do(func() { j.exceed(x) })
	}
	left(job, all)
	return max(next, 9*time.Since(begun)) // no more than a tenth of a processor
}

// measure returns what the process has now.
func (m *meter) measure() (u limits.Usage, err error) {
	if u.Disk, err = scratch.Measure(m.folder); m.process.ctx.Err() != nil {
		return u, err
	}
	u.Time = time.Since(m.began)
	pids := m.processes()
	t := treeUsage(pids, m.folder)
	u.Files = t.files
	u.Disk += t.nameless
	if m.group == nil {
		u.Memory, u.Processes = t.memory, t.threads
		return u, err
	}
	groups, g := m.process.job.service.groups, m.group.Usage()
	u.Memory, u.Processes = t.memory, t.threads
	if groups.Missing(cgroup.Memory) == nil {
		u.Memory = g.Memory
	}
	if groups.Missing(cgroup.Pids) == nil {
		u.Processes = g.Processes
	}
	if killed, refused, memory, processes := refusals(g); killed || refused {
		u.Killed, u.Refused, u.Memory, u.Processes = killed, refused, memory, processes
	}
	return u, err
}

// processes returns the program's, and what it has started.
func (m *meter) processes() []int {
	if m.group != nil {
		if pids := m.group.Processes(); len(pids) > 0 {
			return pids
		}
	}
	return m.program.Descendants()
}

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
func (p *process) autopsy(e supervisor.Exit) {
	if p.live == nil || e == (supervisor.Exit{}) {
		return
	}
	u := limits.Usage{Cut: e.Signal == syscall.SIGXFSZ.String()}
	if u.Cut {
		u.Disk = p.job.grant.Slot.Disk
	}
	if g := p.live.group; g != nil {
		u.Killed, u.Refused, u.Memory, u.Processes = refusals(g.Usage())
	}
	if x, exceeded := p.job.grant.Exceeded(u); exceeded {
		p.exceed(x)
	}
}

// refusals returns what the kernel has done to hold a group to its limits, and the most that
// it has had.
func refusals(u cgroup.Usage) (killed, refused bool, memory, processes int64) {
	return u.Killed > 0, u.Refused > 0, u.MostMemory, u.MostProcesses
}

// checkInputs says whether the job's inputs fit into what its processes may have on disk.
func (j *job) checkInputs(inputs filetransfer.Manifest) error {
	var size int64
	for _, f := range inputs {
		size += f.Size
	}
	slot, job := j.grant.Slot.Exceeded, j.grant.Job.Exceeded
	if x, exceeded := slot(limits.Usage{Disk: size}); exceeded {
		return fmt.Errorf("the input files: %v", x)
	}
	if x, exceeded := job(limits.Usage{Disk: j.program.Size + size*int64(len(j.order))}); exceeded {
		x.Job = true
		return fmt.Errorf("program and input files: %v", x)
	}
	return nil
}
