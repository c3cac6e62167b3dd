package job

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An Entry records which processes of a started job have called mpj.Init. It reads no clock.
//
// The job begins when all processes have called mpj.Init, so a peer that never reports Initialized
// would delay the job forever. The replicas of a rank do the same work before mpj.Init. So a replica
// that has not called mpj.Init is failed once most replicas of its rank have waited there long enough:
// for at least a given time, and for at least entryFactor times as long as they took to call it. With
// two replicas neither is failed, because the peer that reported Initialized early may be the liar
// (V4); the job ends with StatusDiverged. Once some process has called mpj.Init, and the given time
// has passed, the user is told which processes are missing.
type Entry struct {
	started time.Time                  // time when all processes had been started
	since   map[view.Process]time.Time // when each process called mpj.Init, or ended without that call
	called  bool                       // a process has called mpj.Init
	told    bool                       // the user knows which processes are missing
	looked  time.Time                  // time of the last check for missing processes
}

const (
	// entryFactor bounds the time that a process may take, as a multiple of the time that most
	// replicas of its rank took.
	entryFactor = 4
	// EntryPeriod is how often the owner of an Entry calls Look and checks for missing processes.
	EntryPeriod = time.Second
)

// NewEntry returns the Entry of a job whose processes had all been started at the given time.
func NewEntry(started time.Time) *Entry {
	return &Entry{started: started, since: make(map[view.Process]time.Time), looked: started}
}

// Look records the time of a check, once per EntryPeriod. Time in which a missing process is
// suspended does not count, and neither does time in which this process did not run.
func (n *Entry) Look(now time.Time, suspended bool) {
	lost := now.Sub(n.looked)
	if n.looked = now; !suspended {
		lost = max(0, lost-2*EntryPeriod)
	}
	n.started = n.started.Add(lost)
	for p := range n.since {
		n.since[p] = n.since[p].Add(lost)
	}
}

// Initialized records that p has called mpj.Init.
func (n *Entry) Initialized(p view.Process, now time.Time) {
	n.called = true
	n.Arrived(p, now)
}

// Arrived records that p has called mpj.Init or has ended.
func (n *Entry) Arrived(p view.Process, now time.Time) {
	if _, known := n.since[p]; !known {
		n.since[p] = now
	}
}

// Overdue returns the live processes of v that have not called mpj.Init although most replicas of
// their rank have been waiting there for long enough; see waiting.
func (n *Entry) Overdue(v view.View, least time.Duration, now time.Time) (out []view.Process) {
	for _, p := range n.Missing(v) {
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

// waiting returns the replicas of a rank that called mpj.Init, or ended, long enough ago: at least
// the given time, and at least entryFactor times as long as they took to get there.
func (n *Entry) waiting(v view.View, rank int, least time.Duration, now time.Time) (out []view.Process) {
	for _, p := range replicasOf(v, rank) {
		if since, called := n.since[p]; called && now.Sub(since) >= max(least, entryFactor*since.Sub(n.started)) {
			out = append(out, p)
		}
	}
	return out
}

// Undecided returns two processes of a rank with no other replica. The first has not called
// mpj.Init; the second has been waiting there, or has ended, for too long. ok is false if there is
// no such pair.
func (n *Entry) Undecided(v view.View, least time.Duration, now time.Time) (missing, waiting view.Process, ok bool) {
	for _, p := range n.Missing(v) {
		if waits := n.waiting(v, p.Rank, least, now); len(waits) == 1 && len(replicasOf(v, p.Rank)) == 2 {
			return p, waits[0], true
		}
	}
	return missing, waiting, false
}

// Missing returns the live processes of v that have not called mpj.Init.
func (n *Entry) Missing(v view.View) (out []view.Process) {
	for _, p := range v.Processes() {
		if _, called := n.since[p]; !called && v.Live(p) {
			out = append(out, p)
		}
	}
	return out
}

// ToTell returns the missing processes once, when the job was started at least the given time ago.
// It returns no process until some process has called mpj.Init, since the program may not use mpj.
func (n *Entry) ToTell(v view.View, least time.Duration, now time.Time) []view.Process {
	if n.told || !n.called || now.Sub(n.started) < least {
		return nil
	}
	n.told = true
	return n.Missing(v)
}
