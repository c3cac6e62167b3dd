package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// processes holds the known facts about the processes of a job: the current view, the requested changes,
// and the reports of their peers. Its methods answer questions about the processes; State decides.
type processes struct {
	view  view.View
	procs []watched
}

// watched is the state of one process.
type watched struct {
	initialized bool
	unkept      bool // cannot bring a new replica up to date any more
	leaving     bool // the owner of its peer takes the machine back; see Leaves
	joining     bool // joined late and has not caught up with its rank yet
	exit        *Exit
	aborted     *Result // result of the job, if the process called Abort
	host        string  // name of its peer, if the process called Abort
	drained     bool    // the user has all its output
	reports     int     // number of its divergence reports; see Diverged

	setAside view.Change // the change last requested to set it aside
	upToDate view.Change // the change by which it counts again, according to its last UpToDate report
	leave    view.Change // the change last requested by which it leaves

	asked view.State // state that was requested for it
	why   string     // reason for a failure or end, as the rest of a sentence
}

func newProcesses(v view.View) processes { return processes{view: v, procs: make([]watched, v.N*v.R)} }

// View returns the current view, the latest one agreed on.
func (ps *processes) View() view.View { return ps.view }

func (ps *processes) at(p view.Process) *watched { return &ps.procs[p.Rank*ps.view.R+p.Replica] }

// state returns the state that p has once all requested changes have been agreed on. A request
// fails only if the whole job ends.
func (ps *processes) state(p view.Process) view.State { return max(ps.view.State(p), ps.at(p).asked) }

// has reports whether p is still live or finished once all requested changes have been agreed on.
func (ps *processes) has(p view.Process) bool {
	state := ps.state(p)
	return state == view.Live || state == view.Finished
}

// Asked returns the requested changes by which processes end and that are not agreed on yet.
func (ps *processes) Asked() (changes []view.Change) {
	for _, p := range ps.view.Processes() {
		if to := ps.at(p).asked; to > ps.view.State(p) {
			changes = append(changes, view.Change{Process: p, To: to})
		}
	}
	return changes
}

// replicas returns the processes of a rank, including those that have ended.
func (ps *processes) replicas(rank int) []view.Process {
	all := make([]view.Process, 0, ps.view.R)
	for k := range ps.view.R {
		if p := (view.Process{Rank: rank, Replica: k}); ps.view.State(p) != view.Vacant {
			all = append(all, p)
		}
	}
	return all
}

// Counting returns the replicas of a rank that have not failed, are not about to, and do not lag.
func (ps *processes) Counting(rank int) []view.Process {
	return slices.DeleteFunc(ps.replicas(rank), func(p view.Process) bool { return !ps.has(p) || ps.lags(p) })
}

// mayCount reports whether p counts for the decisions of its rank, and no request to set it aside is pending.
func (ps *processes) mayCount(p view.Process) bool {
	c := ps.at(p).setAside
	_, pending := c.Apply(ps.view)
	return ps.view.AsideSince(p) == 0 && !(c.Aside && pending)
}

// lags reports whether p is live and has yet to catch up with the others of its rank. A process
// that has ended must have caught up.
func (ps *processes) lags(p view.Process) bool {
	return ps.view.Live(p) && ps.at(p).joining && ps.at(p).exit == nil
}

// Lags reports whether a process that joined rank has yet to catch up.
func (ps *processes) Lags(rank int) bool {
	return slices.ContainsFunc(ps.view.LiveReplicas(rank), ps.lags)
}

// Leaving reports whether the owner of p's peer takes the machine back.
func (ps *processes) Leaving(p view.Process) bool { return ps.view.Contains(p) && ps.at(p).leaving }

// Working returns the processes that count and have not ended unsuccessfully. Their work can be
// compared.
func (ps *processes) Working() (working []view.Process) {
	for rank := range ps.view.N {
		for _, p := range ps.Counting(rank) {
			if x := ps.at(p); x.exit == nil || x.exit.Good() {
				working = append(working, p)
			}
		}
	}
	return working
}

// endedWell reports whether p has ended successfully, according to its peer.
func (ps *processes) endedWell(p view.Process) bool {
	return ps.at(p).exit != nil && ps.at(p).exit.Good()
}

// Unexplained reports whether p finishes only at its peer's request, although the peer has not
// reported a successful end of p.
func (ps *processes) Unexplained(p view.Process) bool {
	return ps.view.Contains(p) && ps.at(p).asked < view.Finished && !ps.endedWell(p)
}

// Silent reports whether p has finished in the view although its peer has not reported a successful
// end.
func (ps *processes) Silent(p view.Process) bool {
	return ps.view.State(p) == view.Finished && !ps.endedWell(p)
}

// Undrained returns the output leaders that have ended or called Abort, and whose output the user
// does not have completely.
func (ps *processes) Undrained() (undrained []view.Process) {
	for rank := range ps.view.N {
		if p, ok := ps.view.OutputLeader(rank); ok {
			at := ps.at(p)
			if ended := ps.view.State(p) == view.Finished || at.exit != nil || at.aborted != nil; ended && !at.drained {
				undrained = append(undrained, p)
			}
		}
	}
	return undrained
}

// Uninitialized reports whether no process called mpj.Init, so that every rank did the same work
// alone.
func (ps *processes) Uninitialized() bool {
	return !slices.ContainsFunc(ps.procs, func(w watched) bool { return w.initialized })
}

// disputedAbort reports whether a replica of a finished rank called Abort and the dispute about that
// call is undecided. The dispute is undecided if the other replicas are not a majority, or if the rank
// has fewer than Quorum replicas.
func (ps *processes) disputedAbort(rank int) bool {
	aborted, others := 0, 0
	for _, p := range ps.replicas(rank) {
		switch {
		case ps.at(p).aborted != nil:
			aborted++
		case ps.view.Has(p):
			others++
		}
	}
	return aborted > 0 && (others <= aborted || aborted+others < Quorum)
}

// disagreement returns the result of a job in which replicas of a rank disagree about Abort: some
// did not call it, or called it with another status.
func (ps *processes) disagreement(rank int) Result {
	var ends []string
	for _, p := range ps.replicas(rank) {
		switch at := ps.at(p); {
		case at.aborted != nil:
			ends = append(ends, fmt.Sprintf("replica %d on peer %s: %s (status %d)", p.Replica, at.host, at.aborted.Message, at.aborted.Status))
		case ps.view.State(p) == view.Finished:
			ends = append(ends, fmt.Sprintf("replica %d finished", p.Replica))
		}
	}
	return *diverged(rank, strings.Join(ends, "; "))
}

// reason returns why p has failed, as the rest of a sentence. A process that joined its rank late
// ends by itself if the rank is done before p is up to date. That end is not the program's fault.
func (ps *processes) reason(p view.Process) string {
	at := ps.at(p)
	done := slices.ContainsFunc(ps.replicas(p.Rank), func(q view.Process) bool { return ps.view.State(q) == view.Finished })
	if done && at.joining && at.exit != nil && at.exit.endedByItself() {
		return "had yet to be brought up to date" + whenDone
	}
	return at.why
}
