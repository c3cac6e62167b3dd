package engine

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A rank that has finalized sends no more messages. Its Flush has waited until its messages were at
// this process or in a ring. So a receive from that rank without a matching message would wait
// forever. Such a receive fails when the program waits for it; until then it stays posted, because
// the program may cancel it. All replicas of a rank fail in the same receives, because they have the
// same messages.

// recordFinished records the ranks that have finalized in the view. e.mu is held.
func (e *Engine) recordFinished() {
	e.finished = slices.Grow(e.finished[:0], e.view.N)[:e.view.N]
	e.anyFinished = false
	for rank := range e.finished {
		e.finished[rank] = rank != e.self.Rank && hasFinished(e.view, rank)
		e.anyFinished = e.anyFinished || e.finished[rank]
	}
	if !e.anyFinished {
		return
	}
	e.undrained = true
	if e.poller.spinning { // a spinning goroutine polls the rings without e.mu, and drains them when it ends
		e.poller.awaited.wake()
		return
	}
	e.drainFinished()
}

// drainFinished takes the last messages of finalized ranks out of the rings, before any receive
// from these ranks fails. e.mu is held, and no goroutine spins.
func (e *Engine) drainFinished() {
	for e.progress() && e.err == nil {
	}
	e.undrained = false
	for _, w := range e.sleepers {
		w.wake()
	}
}

// hasFinished reports whether a replica of rank has finished and none is live.
func hasFinished(v view.View, rank int) bool {
	finished := false
	for k := range v.R {
		switch v.State(view.Process{Rank: rank, Replica: k}) {
		case view.Live:
			return false
		case view.Finished:
			finished = true
		}
	}
	return finished
}

// over reports whether source sends no more messages. A joining process still gets messages of
// finished ranks from other processes.
func (e *Engine) over(source int) bool {
	return e.anyFinished && !e.undrained && source >= 0 && e.finished[source] && (e.protocol == nil || e.logComplete)
}

// unmatchable reports whether no message will ever match receive r.
func (e *Engine) unmatchable(r *Request) bool {
	if !r.Posted() || r.Wild != nil || !e.over(r.Source) {
		return false
	}
	m, _ := e.mailbox(r.context).Probe(r.Source, r.Tag)
	return m == nil // otherwise an earlier wildcard may take m, or leave it
}

// allUnmatchable reports whether a program that waits for any of these requests would wait forever.
func (e *Engine) allUnmatchable(rs []*Request) bool {
	return e.anyFinished && !slices.ContainsFunc(rs, func(r *Request) bool { return !e.unmatchable(r) })
}

// failUnmatchable makes receive r, for which the program waits, fail if r is unmatchable. It reports
// whether r failed.
func (e *Engine) failUnmatchable(r *Request) (failed bool) {
	if failed = e.unmatchable(r); failed {
		e.mailbox(r.context).Withdraw(&r.Recv)
		r.err = &engineapi.FinalizedError{Rank: r.Source}
		r.done = true
	}
	return failed
}
