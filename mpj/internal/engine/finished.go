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

// A finalized records which other ranks have finalized. It is a pure value.
type finalized struct {
	ranks     []bool
	any       bool
	undrained bool // rings may still hold messages of these ranks
	replaying bool // this process is new, and still gets messages of these ranks from other processes
}

// record records the ranks that have finalized in v, apart from this process's own.
func (f *finalized) record(v view.View, own int) {
	f.ranks = slices.Grow(f.ranks[:0], v.N)[:v.N]
	f.any = false
	for rank := range f.ranks {
		f.ranks[rank] = rank != own && hasFinished(v, rank)
		f.any = f.any || f.ranks[rank]
	}
	f.undrained = f.undrained || f.any
}

// over reports whether all messages of source have arrived and it sends no more.
func (f *finalized) over(source int) bool {
	return f.any && !f.undrained && !f.replaying && source >= 0 && f.ranks[source]
}

// recordFinished records the ranks that have finalized in the view. e.mu is held.
func (e *Engine) recordFinished() {
	if e.finished.record(e.view, e.self.Rank); !e.finished.any {
		return
	}
	if e.conns.poller.spinning { // a spinning goroutine polls the rings without e.mu, and drains them when it ends
		e.conns.poller.awaited.Wake()
		return
	}
	e.drainFinished()
}

// drainFinished takes the last messages of finalized ranks out of the rings, before any receive
// from these ranks fails. e.mu is held, and no goroutine spins.
func (e *Engine) drainFinished() {
	for e.conns.poller.progress() && e.err == nil {
	}
	e.finished.undrained = false
	e.conns.poller.wakeSleepers()
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

// unmatchable reports whether no message will ever match receive r.
func (e *Engine) unmatchable(r *Request) bool {
	if !r.Posted() || r.Wild != nil || !e.finished.over(r.Source) {
		return false
	}
	m, _ := e.mailbox(r.context).Probe(r.Source, r.Tag)
	return m == nil // otherwise an earlier wildcard may take m, or leave it
}

// allUnmatchable reports whether a program that waits for any of these requests would wait forever.
func (e *Engine) allUnmatchable(rs []*Request) bool {
	return e.finished.any && !slices.ContainsFunc(rs, func(r *Request) bool { return !e.unmatchable(r) })
}

// failUnmatchable makes receive r, for which the program waits, fail if r is unmatchable. It reports
// whether r failed.
func (e *Engine) failUnmatchable(r *Request) (failed bool) {
	if failed = e.unmatchable(r); failed {
		e.mailbox(r.context).Withdraw(&r.Recv)
		r.Err = &engineapi.FinalizedError{Rank: r.Source}
		r.done = true
	}
	return failed
}
