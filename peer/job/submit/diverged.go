package submit

import (
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

// take decodes a divergence report of process p. It keeps an early one, whose receiver joins in a
// view after v.
func (r earlyReports) take(p view.Process, m *jobpb.Diverged, v view.View) (d protection.Divergence, early bool, err error) {
	d, err = m.Divergence(v)
	if early = v.State(d.Receiver) == view.Vacant; !early {
		return d, false, err
	}
	if len(r[p]) < job.MaxReports {
		r[p] = append(r[p], d)
	}
	return d, true, nil
}

// A divergenceReport is a report with the process that made it.
type divergenceReport struct {
	by view.Process
	protection.Divergence
}

// about returns the valid early reports about a receiver, which has joined with view v.
func (r earlyReports) about(receiver view.Process, v view.View) (out []divergenceReport) {
	for _, p := range v.Processes() {
		for _, d := range r[p] {
			if d.Receiver == receiver && d.Valid(p, v) == nil {
				out = append(out, divergenceReport{p, d})
			}
		}
	}
	return out
}

// evidence describes a report of process p as a sentence, with the peers concerned.
func evidence(m *membership, p view.Process, d protection.Divergence) string {
	return fmt.Sprintf("rank %d replica %d on peer %s has produced a different message than rank %d replica %d on peer %s has received: %v",
		p.Rank, p.Replica, m.peerOf(p), d.Receiver.Rank, d.Receiver.Replica, m.peerOf(d.Receiver), d)
}
