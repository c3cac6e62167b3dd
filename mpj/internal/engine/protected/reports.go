package protected

import "github.com/p2pmpi/p2pmpi/internal/protection"

// maxDiverged bounds the reports of messages that differ between replicas. The first report is
// enough to stop a job.
const maxDiverged = 256

// reports tells the user of the engine what the job must know about its replicas. The callbacks may
// block and may be nil. Each call has its own goroutine, so nothing waits for it but Close and, for a
// divergence, Flush. Of the engine, it needs such goroutines, the mutex, and a way to wake Flush.
type reports struct {
	p          *transport
	diverged   func(protection.Divergence)
	ahead      func()
	stalled    func()
	upToDate   func(protection.UpToDate)
	joined     func(messages, bytes uint64)
	logDropped func(why string, permanent bool)

	divergences int // number of calls of diverged
	pending     int // number of calls of diverged that have not returned
}

func newReports(p *transport, c *Config) reports {
	return reports{
		p: p, diverged: c.Diverged, ahead: c.Ahead, stalled: c.Stalled, upToDate: c.UpToDate,
		joined: c.Joined, logDropped: c.LogDropped,
	}
}

// reportDivergence reports d. Flush waits for the callback, because the process must send its reports
// before it ends.
func (r *reports) reportDivergence(d protection.Divergence) {
	if r.diverged == nil || r.divergences == maxDiverged {
		return
	}
	r.divergences++
	r.pending++
	r.p.loop.Go(func() { // until the callback returns
		r.diverged(d)
		r.p.loop.Lock()
		defer r.p.loop.Unlock()
		r.pending--
		r.p.loop.WakeFlush()
	})
}

// reportAhead reports that this process is ahead of its master.
func (r *reports) reportAhead() {
	if r.ahead != nil {
		r.p.loop.Go(r.ahead)
	}
}

// reportStall reports that the rank waits for other replicas to receive an outcome.
func (r *reports) reportStall() {
	if r.stalled != nil {
		r.p.loop.Go(r.stalled)
	}
}

// reportUpToDate passes on the master's statement that this process, which is set aside, lacks nothing.
func (r *reports) reportUpToDate(said protection.UpToDate) {
	if r.upToDate != nil {
		r.p.loop.Go(func() { r.upToDate(said) })
	}
}

// reportJoined reports that this process, which was new, has caught up with its rank.
func (r *reports) reportJoined(messages, bytes uint64) {
	if r.joined != nil {
		r.p.loop.Go(func() { r.joined(messages, bytes) })
	}
}

// reportLogDropped reports that the message log was dropped, permanently or until the next checkpoint.
func (r *reports) reportLogDropped(why string, permanent bool) {
	if r.logDropped != nil {
		r.p.loop.Go(func() { r.logDropped(why, permanent) })
	}
}
