package filetransfer

import (
	"context"
	"sync"
)

// A Pacing blocks until the given number of bytes, at most 64 KiB, may be sent, or until ctx ends. If a
// Pacing blocks for more than half a minute, the fetching peer gives up on the stream.
type Pacing func(ctx context.Context, bytes int) error

// paces holds the pacing of each job.
type paces struct {
	mu    sync.Mutex
	ofJob map[string]Pacing
}

// Pace applies p to all bytes that are sent for a job, until stop is called.
func (ps *paces) Pace(job string, p Pacing) (stop func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.ofJob[job] = p
	return sync.OnceFunc(func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(ps.ofJob, job)
	})
}

// await blocks until the given number of bytes may be sent for a job.
func (ps *paces) await(ctx context.Context, job string, bytes int) error {
	ps.mu.Lock()
	p := ps.ofJob[job]
	ps.mu.Unlock()
	if p == nil {
		return nil
	}
	return p(ctx, bytes)
}
