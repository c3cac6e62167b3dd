package submit

import (
	"cmp"
	"errors"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

var errOutside = errors.New("it has left the view group")

// takeAgreed handles the events of the view group.
func (e *execution) takeAgreed() (r *job.Result) {
	changes, contact, turned := e.views.events.take()
	for _, c := range e.partition.hold(changes) {
		r = cmp.Or(r, e.applyAgreed(c))
	}
	switch err := e.views.group.Err(); {
	case !turned:
	case err != nil:
		return &job.Result{
			Status: job.StatusLost, Message: "the job's peers cannot agree any more: " + err.Error(),
			Hint: "start it again without that peer (--not-peer)",
		}
	case e.partition.active:
		e.deadlines.peers = nil
		if contact == viewgroup.InTouch {
			e.deadlines.peers = time.After(e.j.s.waits.reconnect)
		}
	case contact == viewgroup.InTouch:
		e.regroup()
	case contact == viewgroup.CutOff && e.leaves():
		r = cmp.Or(r, e.beginPartition("cut off from the majority of the job's peers, which may continue without this machine"))
	case contact == viewgroup.CutOff:
		for _, l := range e.partition.takeSilent() {
			r = cmp.Or(r, e.loseSilentPeer(l))
		}
		r = cmp.Or(r, e.apply(e.state.CutOff()))
	}
	return r
}

// applyAgreed applies a change that was agreed on. It records which peers requested a failure, for
// the user, unless a reason is known already.
func (e *execution) applyAgreed(c viewgroup.Committed) *job.Result {
	switch p := c.Change.Process; c.Change.To {
	case view.Failed:
		e.state.Attribute(p, e.views.accusation(c))
	case view.Finished:
		if e.state.Unexplained(p) && e.deadlines.exits == nil {
			e.deadlines.exits = time.After(e.j.s.waits.reconnect)
		}
	}
	return e.commit(c.Change, e.views.sources(c))
}

// commit applies a change of the view that the given peers requested.
func (e *execution) commit(c view.Change, by []p2ppeer.ID) *job.Result {
	s := e.state.Committed(c)
	for _, id := range by {
		s.By = append(s.By, id.String())
	}
	if s.View != nil {
		e.j.log.Info().Stringer("change", c).Strs("by", s.By).Msg("view changed")
	}
	return e.apply(s)
}

// loseUnreported gives up the peers whose processes have finished in the view but whose end they
// have not reported within waits.reconnect. No other peer can report it, and the rank would wait
// for its output forever.
func (e *execution) loseUnreported() (r *job.Result) {
	e.deadlines.exits = nil
	for _, l := range e.peers.links {
		if l.err == nil && !isDisconnected(l) && slices.ContainsFunc(l.processes, e.state.Silent) {
			r = cmp.Or(r, e.protocolError(l, errors.New("its process has finished, but it has not reported the exit")))
		}
	}
	return r
}
