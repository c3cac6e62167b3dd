package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An entry records which processes of a started job have called mpj.Init. It reads no clock.
//
// The job begins when all processes have called it, so a peer that never reports Initialized would
// delay the job forever. The replicas of a rank do the same work before mpj.Init. So a replica that
// has not called it is failed once most replicas of its rank have waited there long enough. That is
// for at least waits.silence, and for at least entryFactor times as long as they took to call it.
// With two replicas neither is failed, because the peer that reported Initialized early may be the
// liar (V4); the job ends with StatusDiverged. Once some process has called mpj.Init, and
// waits.silence has passed, the user is told which processes are missing.
type entry struct {
	started time.Time                  // time when all processes had been started
	since   map[view.Process]time.Time // when each process called mpj.Init, or ended without it
	called  bool                       // a process has called mpj.Init
	told    bool                       // the user knows which processes are missing
	looked  time.Time                  // time of the last check for missing processes
}

const (
	// entryFactor is how many times as long as most replicas of its rank a process may take.
	entryFactor = 4
	// entryPeriod is how often awaitEntry checks for missing processes.
	entryPeriod = time.Second
)

func newEntry(started time.Time) *entry {
	return &entry{started: started, since: make(map[view.Process]time.Time), looked: started}
}

// look records the time of a check, once per entryPeriod. Time in which a missing process is
// suspended does not count, and neither does time in which this process did not run.
func (n *entry) look(now time.Time, suspended bool) {
	lost := now.Sub(n.looked)
	if n.looked = now; !suspended {
		lost = max(0, lost-2*entryPeriod)
	}
	n.started = n.started.Add(lost)
	for p := range n.since {
		n.since[p] = n.since[p].Add(lost)
	}
}

// initialized records that p has called mpj.Init.
func (n *entry) initialized(p view.Process, now time.Time) {
	n.called = true
	n.arrived(p, now)
}

// arrived records that p has called mpj.Init or has ended.
func (n *entry) arrived(p view.Process, now time.Time) {
	if _, known := n.since[p]; !known {
		n.since[p] = now
	}
}

// overdue returns the live processes of v that have not called mpj.Init although most replicas of
// their rank have been waiting there for long enough; see waiting.
func (n *entry) overdue(v view.View, least time.Duration, now time.Time) (out []view.Process) {
	for _, p := range n.missing(v) {
		if 2*len(n.waiting(v, p.Rank, least, now)) > len(replicasOf(v, p.Rank)) {
			out = append(out, p)
		}
	}
	return out
}

// replicasOf returns the replicas of a rank that have not failed.
func replicasOf(v view.View, rank int) (ps []view.Process) {
	for k := range v.R {
		if p := (view.Process{Rank: rank, Replica: k}); v.Has(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// waiting returns the replicas of a rank that called mpj.Init, or ended, long enough ago. That is
// at least the given time, and at least entryFactor times as long as they took to get there.
func (n *entry) waiting(v view.View, rank int, least time.Duration, now time.Time) (out []view.Process) {
	for _, p := range replicasOf(v, rank) {
		if since, called := n.since[p]; called && now.Sub(since) >= max(least, entryFactor*since.Sub(n.started)) {
			out = append(out, p)
		}
	}
	return out
}

// undecided returns two processes of a rank with no other replica. The first has not called
// mpj.Init; the second has been waiting there, or has ended, for too long. ok is false if there is
// no such pair.
func (n *entry) undecided(v view.View, least time.Duration, now time.Time) (missing, waiting view.Process, ok bool) {
	for _, p := range n.missing(v) {
		if waits := n.waiting(v, p.Rank, least, now); len(waits) == 1 && len(replicasOf(v, p.Rank)) == 2 {
			return p, waits[0], true
		}
	}
	return missing, waiting, false
}

// missing returns the live processes of v that have not called mpj.Init.
func (n *entry) missing(v view.View) (out []view.Process) {
	for _, p := range v.Processes() {
		if _, called := n.since[p]; !called && v.Live(p) {
			out = append(out, p)
		}
	}
	return out
}

// toTell returns the missing processes once, when the job was started at least the given time ago.
// It returns none while no process has called mpj.Init: the program may not use it.
func (n *entry) toTell(v view.View, least time.Duration, now time.Time) []view.Process {
	if n.told || !n.called || now.Sub(n.started) < least {
		return nil
	}
	n.told = true
	return n.missing(v)
}

// awaitEntry fails the processes that are overdue in mpj.Init, and tells the user which processes
// the job waits for.
func (e *execution) awaitEntry() *Result {
	if e.begin != nil {
		e.entering = nil
		return nil
	}
	now, v, least := time.Now(), e.watch.View(), e.j.s.waits.silence
	e.entry.look(now, slices.ContainsFunc(e.entry.missing(v), e.suspended))
	if missing := e.entry.toTell(v, least, now); len(missing) > 0 {
		e.j.warn("the job waits for mpj.Init, which has not been called by " + e.whereAll(missing))
	}
	if late := e.entry.overdue(v, least, now); len(late) > 0 {
		return e.apply(e.watch.Lost(late, fmt.Sprintf("did not call mpj.Init long after most replicas of its rank had (%s)", e.whereAll(late))))
	}
	if missing, waiting, ok := e.entry.undecided(v, least, now); ok && e.j.req.OnDivergence != Warn {
		return &Result{
			Status: StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: replica %d on peer %s called mpj.Init or ended long ago, and replica %d on peer %s has done neither",
				missing.Rank, waiting.Replica, e.peerOf(waiting), missing.Replica, e.peerOf(missing)),
			Hint: "one of these peers lies or is very slow: with -r 3 most replicas decide",
		}
	}
	return nil
}

// whereAll lists the first few processes with their peers, and the number of the rest.
func (e *execution) whereAll(ps []view.Process) string {
	const most = 4
	var parts []string
	for _, p := range ps[:min(len(ps), most)] {
		parts = append(parts, fmt.Sprintf("rank %d replica %d on peer %s", p.Rank, p.Replica, e.peerOf(p)))
	}
	if more := len(ps) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
