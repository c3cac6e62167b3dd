package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An entry keeps which processes of a job that has been started wait in mpj.Init for the others. It
// reads no clock. A peer that never reports Initialized would keep a job from beginning for ever; the
// replicas of a rank do the same work before mpj.Init, so one that needs many times as long as
// another replica of its rank is given up. A rank none of whose replicas has come may have work
// to do: the user is told that the job waits for it.
type entry struct {
	started time.Time                  // the processes
	since   map[view.Process]time.Time // that each waits
	told    bool                       // whom the job waits for
}

const (
	// entryFactor is how many times as long as the first replica of its rank a process may take.
	entryFactor = 4
	// entryPeriod is how often it is checked which processes are missing.
	entryPeriod = time.Second
)

func newEntry(started time.Time) *entry {
	return &entry{started: started, since: make(map[view.Process]time.Time)}
}

// initialized notes that p waits in mpj.Init.
func (n *entry) initialized(p view.Process, now time.Time) {
	if _, known := n.since[p]; !known {
		n.since[p] = now
	}
}

// overdue returns the live processes of v that have not called mpj.Init although another replica of
// their rank has been waiting there for at least the given time, and for entryFactor times what it took.
func (n *entry) overdue(v view.View, least time.Duration, now time.Time) (out []view.Process) {
	for _, p := range n.missing(v) {
		for _, q := range v.LiveReplicas(p.Rank) {
			since, waits := n.since[q]
			if waits && now.Sub(since) >= max(least, entryFactor*since.Sub(n.started)) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// missing returns the live processes of v that have not called mpj.Init.
func (n *entry) missing(v view.View) (out []view.Process) {
	for _, p := range v.Processes() {
		if _, waits := n.since[p]; !waits && v.Live(p) {
			out = append(out, p)
		}
	}
	return out
}

// toTell returns the processes that the user is to read of, once: some wait for these, and have for
// the given time.
func (n *entry) toTell(v view.View, least time.Duration, now time.Time) []view.Process {
	if n.told || len(n.since) == 0 || now.Sub(n.started) < least {
		return nil
	}
	n.told = true
	return n.missing(v)
}

// awaitEntry fails the processes that are overdue in mpj.Init, and tells the user which ones the job
// waits for.
func (e *execution) awaitEntry() *Result {
	if e.begin != nil {
		e.entering = nil
		return nil
	}
	now, v, least := time.Now(), e.watch.View(), e.j.s.waits.silence
	if missing := e.entry.toTell(v, least, now); len(missing) > 0 {
		e.j.warn("the job waits for mpj.Init, which has not been called by " + e.whereAll(missing))
	}
	if late := e.entry.overdue(v, least, now); len(late) > 0 {
		return e.apply(e.watch.Lost(late, fmt.Sprintf("did not call mpj.Init long after another replica of its rank had (%s)", e.whereAll(late))))
	}
	return nil
}

// whereAll names processes and their peers, a few of them.
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
