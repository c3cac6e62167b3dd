package supervisor

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
)

// Limits are those that the kernel holds a program to; empty or 0 is none.
type Limits struct {
	Groups []string // folders of the control groups that it is born in
	Jobs   []string // those of its job, which go with the last process
	Back   []string // those that the supervisor belongs to

	Files    uint64 // open at a time, by each process
	FileSize uint64 // bytes of one file
	Data     uint64 // bytes of private memory of each process, if no group holds it
	// Processes is the number of processes and threads, the supervisor's threads among them. The kernel counts them
	// for each user namespace since Linux 5.14. Before that it counts all of a user, and there is no such limit.
	Processes uint64

	Niceness int // at least
}

// bear has fork make a process within the limits. The supervisor takes the lesser ones
// upon itself, for good: it exists for this program only. It is in the groups for as long
// as it forks, and counts for nothing there afterwards.
func (l Limits) bear(fork func() (int, error)) (pid int, err error) {
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

// remove removes the groups of a program that is gone with all that it has started.
func (l Limits) remove() {
	cgroup.RemoveEmpty(l.Groups)
	cgroup.RemoveEmpty(l.Jobs)
}
