package engine

import "github.com/p2pmpi/p2pmpi/internal/protection"

// maxDiverged bounds the reports of messages that differ between replicas. The first report is
// enough to stop a job.
const maxDiverged = 256

// tellDiverged reports d without waiting for the callback. Flush waits for the callback, because the
// process must send its reports before it ends. e.mu is held.
func (e *Engine) tellDiverged(d protection.Divergence) {
	if e.tell == nil || e.diverged == maxDiverged {
		return
	}
	e.diverged++
	e.telling++
	e.running.Add(1)
	go func() { // until the callback returns
		defer e.running.Done()
		e.tell(d)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.telling--
		e.flush.wake()
	}()
}
