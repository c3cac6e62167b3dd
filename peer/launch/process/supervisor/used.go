package supervisor

import "time"

// Used returns the processor time of the program and its descendants, once Close has returned. It excludes
// orphans that were not waited for. Memory is unknown here: the kernel starts a child's peak at that of its
// parent.
func (p *Process) Used() (cpu time.Duration) {
	s := p.cmd.ProcessState
	if s == nil {
		return 0
	}
	return s.UserTime() + s.SystemTime()
}
