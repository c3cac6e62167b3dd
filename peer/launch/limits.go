package launch

import (
	"fmt"
	"math"
	"syscall"
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

// confine makes the control group of a process and returns what the kernel is to hold its
// program to. name is that of the process, or of the compiler.
func (j *job) confine(name string) (group *cgroup.Group, l supervisor.Limits, err error) {
	slot := j.grant.Slot
	l.Files = uint64(slot.Files)
	l.FileSize = uint64(slot.Disk + slot.Disk/32) // so that it is seen that there is too much
	if j.service.groups.Missing(cgroup.Memory) != nil && slot.Memory > 0 {
		l.Data = uint64(slot.Memory + slot.Memory/4 + dataSlack)
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

const (
	measureEvery       = 500 * time.Millisecond // at least
	measureMemoryEvery = 20 * time.Millisecond  // where the kernel does not hold it
)

// A meter measures what one process has, and all that it has started.
type meter struct {
	process *process
	folder  string
	group   *cgroup.Group // nil: none
	program *supervisor.Process
	began   time.Time
	over    bool // it has too much, and is to be killed
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
	free, left, next, again := int64(0), int64(0), time.Duration(0), time.Time{}
	for {
		select {
		case <-time.After(next):
		case <-j.ctx.Done():
			return
		}
		// Until as much has been written to the disk as was left, by whomever, nobody has
		// to look who it was.
		written := free - freeBytes(string(j.folder))
		due := time.Until(again)
		if written < left && due > 0 {
			next = min(due, limits.Pause(left-written))
			continue
		}
		begun := time.Now()
		var halted map[int]*meter
		if due > 0 { // who it was could write a lot while that is found out
			halted = halt(meters)
		}
		free = freeBytes(string(j.folder)) // before, so that what is written meanwhile counts
		left, next = j.measureAll(meters)
		resume(halted)
		again = time.Now().Add(next)
		next = max(min(next, limits.Pause(left)), time.Since(begun)/4)
	}
}

// measureAll measures all processes, and ends those that have too much. It returns how many
// bytes are left on disk for that one that has least left, and when to measure again at the latest.
func (j *job) measureAll(meters []*meter) (left int64, next time.Duration) {
	var all limits.Usage
	all.Disk, _ = scratch.Measure(j.folder.Program())
	left, next = math.MaxInt64, measureEvery
	held := j.service.groups.Missing(cgroup.Memory) == nil
	remains := func(l limits.Limits, u limits.Usage) {
		if l.Disk > 0 {
			left = min(left, l.Disk-u.Disk)
		}
		if l.Time > 0 {
			next = min(next, l.Time-u.Time)
		}
		if l.Memory > 0 && !held {
			next = min(next, measureMemoryEvery)
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
			m.over = true
			j.do(func() { m.process.exceed(x) })
		case err != nil:
			j.do(func() { m.process.end(fmt.Sprintf("what it has on disk cannot be measured: %v", err)) })
		}
		remains(j.grant.Slot, u)
	}
	if x, exceeded := j.grant.Job.Exceeded(all); exceeded {
		for _, m := range meters {
			m.over = true
		}
		x.Job = true
		j.do(func() { j.exceed(x) })
	}
	remains(j.grant.Job, all)
	return left, next
}

// measure returns what the process has now.
func (m *meter) measure() (u limits.Usage, err error) {
	if u.Disk, err = scratch.Measure(m.folder); m.process.ctx.Err() != nil {
		return u, err
	}
	u.Time = time.Since(m.began)
	t := treeUsage(m.processes(), m.folder)
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

// halt stops all processes that run, and returns them.
func halt(meters []*meter) map[int]*meter {
	halted := make(map[int]*meter)
	for _, m := range meters {
		for _, pid := range m.processes() {
			if !isStopped(pid) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				halted[pid] = m
			}
		}
	}
	return halted
}

// resume has them go on, but for those that are to be killed.
func resume(halted map[int]*meter) {
	for pid, m := range halted {
		if !m.over {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
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
func (p *process) autopsy(e supervisor.Exit) (limits.Excess, bool) {
	if e.Code == 0 && e.Signal == "" {
		return limits.Excess{}, false
	}
	var u limits.Usage
	if p.job.service.groups.Missing(cgroup.Memory) != nil {
		u.Memory = e.Memory // it may have been refused more before anybody measured
	}
	if p.job.grant.Slot.Disk > 0 { // one that was held to the size of one file has that much
		u.Disk, _ = scratch.Measure(p.job.folder.Process(p.id))
	}
	if g := p.live.group; g != nil {
		var most int64
		u.Killed, u.Refused, most, u.Processes = refusals(g.Usage())
		u.Memory = max(u.Memory, most)
	}
	return p.job.grant.Exceeded(u)
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
