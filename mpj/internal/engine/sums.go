package engine

import "github.com/p2pmpi/p2pmpi/internal/protection"

// Sums returns what this process has sent in all, clipped; not ok if nobody can
// compare it with anything, or it is not known.
func (e *Engine) Sums() (sums []protection.Sum, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.protocol == nil {
		return nil, false
	}
	sums, ok = e.protocol.Sums()
	return protection.Clip(sums), ok
}
