package launch

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// A Use is what the processes of a job that run here have of the machine; 0 is not known.
type Use struct {
	CPU    time.Duration `json:"cpu"`    // processor time so far, of them and of those that they have waited for
	Memory int64         `json:"memory"` // bytes now, file cache included where a control group counts it
}

// use measures what the job has.
func (j *job) use() (u Use) {
	told := make(chan []*instance, 1)
	if !j.do(func() { told <- j.instances() }) {
		return u
	}
	for _, i := range <-told {
		pids := i.processes()
		memory := int64(0)
		if i.group != nil {
			memory = i.group.Usage().Memory
		}
		if memory == 0 {
			memory = sharedMemoryOf(pids)
		}
		u.CPU, u.Memory = u.CPU+cpuTime(pids), u.Memory+memory
	}
	return u
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

// processes returns the program's, and what it has started.
func (i *instance) processes() []int {
	if i.group != nil {
		if pids := i.group.Processes(); len(pids) > 0 {
			return pids
		}
	}
	return new(supervisor.Census).Take([]*supervisor.Process{i.program})[i.program]
}

// turns are what some processes have had of the processors.
type turns struct {
	at          time.Time
	ran, waited time.Duration // of all their threads
}

// starved reports whether they have wanted to run ever since before, and hardly could: with what
// they got nobody answers in time.
func (t turns) starved(before turns) bool {
	took := t.at.Sub(before.at)
	return t.waited-before.waited > took/2 && t.ran-before.ran < took/20
}
