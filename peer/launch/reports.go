package launch

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A reports bounds what a process reports to the submitter about itself and the other replicas of its rank.
type reports struct {
	healed, unkept, lapsed bool // reports that are made once
	upToDate               protection.UpToDate
	stalls                 int // number of handled reports that its rank waits or that it is up to date
	diverged               int // number of reports that replicas differ
	aheads                 int // number of reports that it is ahead of its master
}

const (
	// maxDiverged bounds a process's reports of messages on which replicas differ. The engine of an honest
	// process sends fewer.
	maxDiverged = 512
	// maxAheads bounds how many reports of a process that it is ahead of its master are handled. The engine of
	// an honest process doubles the interval each time.
	maxAheads = 1024
	// maxStalls bounds how many reports of a process are handled that its rank waits for other replicas or that
	// it is up to date.
	maxStalls = 4096
)

// reportsOnReplicas reports whether m concerns the replicas of the rank of its sender.
func reportsOnReplicas(m proclink.Message) bool {
	switch m.Type {
	case proclink.Diverged:
		return m.Divergence != nil
	case proclink.UpToDate:
		return m.UpToDate != nil
	}
	return m.Type == proclink.Ahead || m.Type == proclink.Stalled
}

// take returns the message to the submitter that a report of process p causes in view v, or nil.
func (r *reports) take(p view.Process, m proclink.Message, v view.View) (*jobpb.FromPeer, error) {
	switch m.Type {
	case proclink.Diverged:
		if r.diverged++; r.diverged > maxDiverged {
			return nil, fmt.Errorf("more than %d divergences", maxDiverged)
		}
		if err := m.Divergence.Valid(p, v); err != nil {
			return nil, err
		}
		return diverged(p, *m.Divergence), nil
	case proclink.LogDropped: // it cannot bring a new replica up to date, either permanently or, if Lapsed, until its next checkpoint
		said := &r.unkept
		if m.Lapsed {
			said = &r.lapsed
		}
		if !*said {
			*said = true
			return unkept(p, m.Text, m.Lapsed), nil
		}
	case proclink.Healed:
		r.healed = true
		return healed(p, m.Count, m.Bytes), nil
	case proclink.Ahead:
		if r.aheads++; r.aheads <= maxAheads {
			return ahead(p), nil
		}
	case proclink.Stalled:
		if r.stalls++; r.stalls <= maxStalls {
			return stalled(p), nil
		}
	case proclink.UpToDate: // a repeated one is dropped, and one about another epoch than that in which p was set aside
		if a := *m.UpToDate; a.Since == v.AsideSince(p) && a.Since != 0 && a != r.upToDate && r.stalls < maxStalls {
			r.upToDate = a
			r.stalls++
			return upToDate(p, a), nil
		}
	}
	return nil, nil
}
