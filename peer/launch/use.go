package launch

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// A Use is what the processes of a job that run here have of the machine; 0 is not known.
type Use struct {
	CPU    time.Duration `json:"cpu"`    // processor time so far, of them and of those that they have waited for
	Memory int64         `json:"memory"` // bytes now, file cache included where a control group counts it
	// Starved is how many do not answer, as the owner's own work leaves them no processor.
	Starved int `json:"starved,omitempty"`
}

// uses measures what each of some jobs has.
func uses(jobs []*job) []Use {
	out, run, all := make([]Use, len(jobs)), make([][]*instance, len(jobs)), []*instance(nil)
	for n, j := range jobs {
		run[n], _ = query(j, func() []*instance {
			out[n].Starved = j.starved()
			return j.instances()
		})
		all = append(all, run[n]...)
	}
	pids := processesOf(new(supervisor.Census), all)
	for n := range out {
		u := &out[n]
		for _, i := range run[n] {
			memory := int64(0)
			if i.group != nil {
				memory = i.group.Usage().Memory
			}
			if memory == 0 {
				memory = proc.SharedMemoryOf(pids[i])
			}
			u.CPU, u.Memory = u.CPU+proc.CPUTime(pids[i]), u.Memory+memory
		}
	}
	return out
}

// instances returns what runs of the job.
func (j *job) instances() (all []*instance) {
	for _, id := range j.order {
		if p := j.local[id]; p.live != nil && p.exit == nil {
			all = append(all, p.live)
		}
	}
	return all
}

// starved returns how many of its processes are.
func (j *job) starved() (n int) {
	for _, p := range j.local {
		if !p.starved.IsZero() {
			n++
		}
	}
	return n
}

// processesOf returns the processes of each: its program, and what that has started. Those without
// groups are looked for among all of the machine, which takes long, once.
func processesOf(census *supervisor.Census, instances []*instance) map[*instance][]int {
	all := make(map[*instance][]int, len(instances))
	var supervised []*supervisor.Process
	for _, i := range instances {
		if i.group != nil {
			all[i] = i.group.Processes()
		}
		if len(all[i]) == 0 {
			supervised = append(supervised, i.program)
		}
	}
	if len(supervised) == 0 {
		return all
	}
	found := census.Take(supervised)
	for _, i := range instances {
		if below, ok := found[i.program]; ok {
			all[i] = below
		}
	}
	return all
}
