package submit

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// awaitEntry fails the processes that are overdue in mpj.Init, and tells the user which processes
// the job waits for.
func (e *execution) awaitEntry() *job.Result {
	if e.begin != nil {
		e.entryTicks = nil
		return nil
	}
	now, v, least := time.Now(), e.state.View(), e.j.s.waits.silence
	e.entry.Look(now, slices.ContainsFunc(e.entry.Missing(v), e.peers.suspended))
	if missing := e.entry.ToTell(v, least, now); len(missing) > 0 {
		e.j.warn("the job waits for mpj.Init, which has not been called by " + e.peers.whereAll(missing))
	}
	if late := e.entry.Overdue(v, least, now); len(late) > 0 {
		return e.apply(e.state.Lost(late, fmt.Sprintf("did not call mpj.Init long after most replicas of its rank had (%s)", e.peers.whereAll(late))))
	}
	if missing, waiting, ok := e.entry.Undecided(v, least, now); ok && e.j.req.OnDivergence != Warn {
		return &job.Result{
			Status: job.StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: replica %d on peer %s called mpj.Init or ended long ago, and replica %d on peer %s has done neither",
				missing.Rank, waiting.Replica, e.peers.peerOf(waiting), missing.Replica, e.peers.peerOf(missing)),
			Hint: "one of these peers lies or is very slow: with -r 3 most replicas decide",
		}
	}
	return nil
}
