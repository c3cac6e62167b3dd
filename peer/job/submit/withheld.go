package submit

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// withheld records, for each output leader that has ended, since when its output has made no
// progress. A rank is done once the user has all its output, so a peer that withholds some would
// delay the job forever (V4).
type withheld map[view.Process]time.Time

// overdue returns those of the given processes whose output has made no progress for at least the
// time that most allows.
func (w withheld) overdue(speakers []view.Process, most func(view.Process) time.Duration, now time.Time) (out []view.Process) {
	maps.DeleteFunc(w, func(p view.Process, _ time.Time) bool { return !slices.Contains(speakers, p) })
	for _, p := range speakers {
		since, known := w[p]
		switch {
		case !known:
			w[p] = now
		case now.Sub(since) >= most(p):
			out = append(out, p)
		}
	}
	return out
}

var errWithheld = errors.New("its process has ended, but the rest of its output does not arrive")

// loseWithholding gives up the peers that withhold output of an output leader that has ended, so that
// another replica becomes output leader. A rank without another replica fails, so its peer gets
// more time.
func (e *execution) loseWithholding() *job.Result {
	var speakers []view.Process
	for _, p := range e.state.Undrained() {
		if l := e.peers.runsOn[p]; l != nil && l.err == nil && !isDisconnected(l) && e.outputs.owes(p) {
			speakers = append(speakers, p)
		}
	}
	for _, p := range e.outputs.withheld.overdue(speakers, e.outputTimeout, time.Now()) {
		if l := e.peers.runsOn[p]; l.err == nil {
			if r := e.lose(l, "it withholds output", errWithheld); r != nil {
				return r
			}
		}
	}
	return nil
}

// outputTimeout returns how long the output of p, which has ended, may make no progress.
func (e *execution) outputTimeout(p view.Process) time.Duration {
	if len(e.state.Counting(p.Rank)) > 1 {
		return e.j.s.waits.output
	}
	return e.j.s.waits.silence
}
