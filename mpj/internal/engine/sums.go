package engine

import "github.com/p2pmpi/p2pmpi/internal/protection"

// Sums returns the sums of all messages that this process has sent, shortened by protection.Clip. ok
// is false without replicas, and when the process has resumed from a checkpoint.
func (e *Engine) Sums() (sums []protection.Sum, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.protected == nil {
		return nil, false
	}
	sums, ok = e.protected.protocol.Sums()
	return protection.Clip(sums), ok
}
