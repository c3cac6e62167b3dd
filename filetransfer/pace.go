package filetransfer

import (
	"context"
	"sync"
)

// A Pacing blocks until the given number of bytes, at most 64 KiB, may be sent, or ctx ends. If it blocks
// for more than half a minute, the fetching peer gives up on the stream.
type Pacing func(ctx context.Context, bytes int) error

// Pace applies p to everything that is sent for a job, until stop is called.
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

// pace waits until the given number of bytes may be sent for a job.
func (s *Service) pace(job string, bytes int) error {
	s.mu.Lock()
	p := s.paces[job]
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p(s.ctx, bytes)
}
