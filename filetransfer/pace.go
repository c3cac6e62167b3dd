package filetransfer

import (
	"context"
	"sync"
)

// A Pacing returns when so many bytes may go, at most 64 KiB, or ctx ends. One that takes more
// than half a minute makes who fetches give up.
type Pacing func(ctx context.Context, bytes int) error

// Pace has all that is sent for a job wait, until stop is called.
func (s *Service) Pace(job string, p Pacing) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paces[job] = p
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.paces, job)
	})
}

// pace waits until so many bytes may go for a job.
func (s *Service) pace(job string, bytes int) error {
	s.mu.Lock()
	p := s.paces[job]
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p(s.ctx, bytes)
}
