//go:build !linux

package supervisor

import (
	"fmt"
	"syscall"
)

// resources sets the resource limits that children of this process inherit.
func (l Limits) resources() error {
	if l.Files == 0 {
		return nil
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: l.Files, Max: l.Files}); err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	return nil
}
