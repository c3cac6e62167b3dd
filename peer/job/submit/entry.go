package submit

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// reviewEntry tells the user which processes the job waits for. It returns the processes that are
// overdue in mpj.Init, or the result of a job whose replicas have diverged there.
func reviewEntry(n *job.Entry, v view.View, m *membership, now time.Time) (late []view.Process, r *job.Result) {
	least := m.j.s.waits.silence
	n.Look(now, slices.ContainsFunc(n.Missing(v), m.suspended))
	if missing := n.ToTell(v, least, now); len(missing) > 0 {
		m.j.warn("the job waits for mpj.Init, which has not been called by " + m.whereAll(missing))
	}
	if late = n.Overdue(v, least, now); len(late) > 0 {
		return late, nil
	}
	if missing, waiting, ok := n.Undecided(v, least, now); ok && m.j.req.OnDivergence != Warn {
		r = &job.Result{
			Status: job.StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: replica %d on peer %s called mpj.Init or ended long ago, and replica %d on peer %s has done neither",
				missing.Rank, waiting.Replica, m.peerOf(waiting), missing.Replica, m.peerOf(missing)),
			Hint: "one of these peers lies or is very slow: with -r 3 most replicas decide",
		}
	}
	return nil, r
}
