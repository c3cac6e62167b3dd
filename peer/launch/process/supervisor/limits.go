package supervisor

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
)

// Limits are the limits that the kernel enforces on a program. An empty or zero field means no limit.
type Limits struct {
	Groups []string // folders of the control groups in which the program starts
	Jobs   []string // folders of the job's control groups, removed with the last process
	Back   []string // folders of the supervisor's own control groups

	Files    uint64 // open files of each process
	FileSize uint64 // bytes of one file
	Data     uint64 // bytes of private memory of each process, if no group limits memory
	// Processes is the number of processes and threads, including the supervisor's threads. Since Linux
	// 5.14, the kernel counts them per user namespace. Earlier kernels count all of a user, and this limit
	// is not set.
	Processes uint64

	Niceness int // minimum niceness
}

// forkWithin calls fork within the limits. The supervisor sets the resource limits on itself permanently,
// since it exists for this program only. It is in the control groups only while it forks, and does not
// count there afterwards.
func (l Limits) forkWithin(fork func() (int, error)) (pid int, err error) {
	if err := l.resources(); err != nil {
		return 0, err
	}
	if err := cgroup.Enter(l.Groups); err != nil {
		return 0, fmt.Errorf("enter control groups: %w", err)
	}
	pid, err = fork()
	if back := cgroup.Enter(l.Back); back != nil && err == nil {
		return 0, fmt.Errorf("leave control groups: %w", back)
	}
	return pid, err
}

// remove removes the control groups of a program that has ended with all its descendants.
func (l Limits) remove() {
	cgroup.RemoveEmpty(l.Groups)
	cgroup.RemoveEmpty(l.Jobs)
}
