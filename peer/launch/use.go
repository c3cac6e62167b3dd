package launch

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// A Use is the current resource use of a job's processes on this peer; 0 means unknown.
type Use struct {
	CPU    time.Duration `json:"cpu"`    // processor time so far, including descendants that have been waited for
	Memory int64         `json:"memory"` // current bytes, including file cache where a control group counts it
	// Starved is the number of processes that do not answer because the owner's own work leaves them no
	// processor.
	Starved int `json:"starved,omitempty"`
}

// uses measures the resource use of each of the given jobs.
func uses(jobs []*job) []Use {
	out, run, all := make([]Use, len(jobs)), make([][]*instance, len(jobs)), []*instance(nil)
	for n, j := range jobs {
		run[n], _ = query(j, func() []*instance {
			out[n].Starved = j.liveness.starved()
			return j.here.instances()
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

// processesOf returns the process IDs of each instance: its program and its descendants. For instances
// without control groups it scans all processes of the machine, once, which takes long.
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
