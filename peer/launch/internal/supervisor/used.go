package supervisor

import "time"

// Used returns the processor time that the program and its descendants have had, once Close has
// returned. What was orphaned and has not been waited for is not in it. How much memory they had is
// not known here: the kernel has a child's peak begin at that of the process that started it.
func (p *Process) Used() (cpu time.Duration) {
	s := p.cmd.ProcessState
	if s == nil {
		return 0
	}
	return s.UserTime() + s.SystemTime()
}
