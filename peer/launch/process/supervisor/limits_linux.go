package supervisor

import (
	"fmt"
	"syscall"
)

// resources sets the resource limits that children of this process inherit.
func (l Limits) resources() error {
	for _, r := range []struct {
		name     string
		resource int
		limit    uint64
	}{
		{"open files", syscall.RLIMIT_NOFILE, l.Files},
		{"file size", syscall.RLIMIT_FSIZE, l.FileSize},
		{"data", syscall.RLIMIT_DATA, l.Data},
	} {
		var now syscall.Rlimit
		if r.limit == 0 || syscall.Getrlimit(r.resource, &now) == nil && now.Max < r.limit {
			continue
		}
		if err := syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: r.limit, Max: r.limit}); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	return nil
}
