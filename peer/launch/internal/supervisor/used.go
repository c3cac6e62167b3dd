package supervisor

import (
	"syscall"
	"time"
)

// Used returns what the program and its descendants have had of the machine, once Close has
// returned: processor time, and the memory of the largest of them at its largest, in bytes. What
// was orphaned and has not been waited for is not in it.
func (p *Process) Used() (cpu time.Duration, memory int64) {
	s := p.cmd.ProcessState
	if s == nil {
		return 0, 0
	}
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		memory = int64(u.Maxrss) << 10 //nolint:unconvert // it has 32 bits where words do; kibibytes, as Linux counts
	}
	return s.UserTime() + s.SystemTime(), memory
}
