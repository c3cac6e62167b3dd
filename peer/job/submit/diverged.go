package submit

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// Values of Request.OnDivergence: what a job does when the replicas of a rank diverge.
const (
	Stop = "stop" // vote out a deviating replica; stop the job if no majority decides
	Warn = "warn" // tell the user and continue
)

// earlyReports holds reports about receivers that have yet to join, by the reporting process.
type earlyReports map[view.Process][]protection.Divergence

// diverged handles a divergence report of process p.
func (e *execution) diverged(l *link, p view.Process, m *jobpb.Diverged) *job.Result {
	v := e.state.View()
	d, err := m.Divergence(v)
	switch {
	case v.State(d.Receiver) == view.Vacant: // the receiver joins in a later view
		if len(e.earlyReports[p]) < job.MaxReports {
			e.earlyReports[p] = append(e.earlyReports[p], d)
		}
		return nil
	case err != nil:
		return e.protocolError(l, err)
	}
	return e.apply(e.state.Diverged(p, d, e.evidence(p, d)))
}

// handleEarlyReports handles the reports that arrived before their receiver joined.
func (e *execution) handleEarlyReports(receiver view.Process) (r *job.Result) {
	v := e.state.View()
	for _, p := range v.Processes() {
		for _, d := range e.earlyReports[p] {
			if d.Receiver != receiver || d.Valid(p, v) != nil {
				continue
			}
			r = cmp.Or(r, e.apply(e.state.Diverged(p, d, e.evidence(p, d))))
		}
	}
	return r
}

// evidence describes a report of process p as a sentence, with the peers concerned.
func (e *execution) evidence(p view.Process, d protection.Divergence) string {
	return fmt.Sprintf("rank %d replica %d on peer %s has produced another message than rank %d replica %d on peer %s has got: %v",
		p.Rank, p.Replica, e.peers.peerOf(p), d.Receiver.Rank, d.Receiver.Replica, e.peers.peerOf(d.Receiver), d)
}
