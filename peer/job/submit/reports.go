package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// The submitter of a resumed job is not in the view group and gets the views from the job's peers.
// Each peer reports all changes, from the first one on, and any peer may lie. So the submitter
// applies a change once more than half of the connected peers that have a part in the previous view
// report it. If only one peer is connected, its report suffices.

// A peerReports holds the changes that one peer reports as agreed on.
type peerReports struct {
	changes []view.Change // the first one makes the view of epoch 2
	outside bool          // the peer gets no further changes
}

// maxChanges is more than an honest peer ever reports.
const maxChanges = 1 << 16

// add records the next change that the peer reports.
func (t *peerReports) add(m *jobpb.Change) error {
	c, err := m.Change()
	switch {
	case err != nil:
		return err
	case m.Epoch != uint64(len(t.changes))+2 || len(t.changes) == maxChanges:
		return fmt.Errorf("view %d after %d others", m.Epoch, len(t.changes)+1)
	}
	t.changes, t.outside = append(t.changes, c), false
	return nil
}

// of returns the change that follows the view v according to the peer.
func (t *peerReports) of(v view.View) (c view.Change, said bool) {
	if i := v.Epoch - 1; i < uint64(len(t.changes)) {
		return t.changes[i], true
	}
	return c, false
}

// A changeReport is one peer's report of the change that follows a view.
type changeReport struct {
	peer   p2ppeer.ID
	silent bool // the peer has yet to report it
	change view.Change
}

// errDisputed reports that the peers of a job contradict each other.
var errDisputed = errors.New("their reports contradict each other")

// decide returns the change that more than half of the reports name. ok is false if there is none
// yet. The error is errDisputed if there cannot be one any more.
func decide(voices []changeReport) (c view.Change, ok bool, err error) {
	votes, silent, most := make(map[view.Change]int), 0, 0
	for _, v := range voices {
		if v.silent {
			silent++
		} else if votes[v.change]++; votes[v.change] > most {
			c, most = v.change, votes[v.change]
		}
	}
	if len(voices) > 0 && 2*(most+silent) <= len(voices) {
		err = errDisputed
	}
	return c, 2*most > len(voices), err
}

// reporters returns the peers that report a change.
func reporters(voices []changeReport, c view.Change) (ids []p2ppeer.ID) {
	for _, v := range voices {
		if !v.silent && v.change == c {
			ids = append(ids, v.peer)
		}
	}
	return ids
}

// nextChanges returns the connected peers' reports of the change that follows v. It uses the peers
// that run a process in v, which will receive that change if they have not yet. If there is none,
// it uses the reports of the other connected peers: those whose processes failed earlier or joined
// later.
func (a *resumption) nextChanges(v view.View) (all []changeReport) {
	var others []changeReport
	for _, l := range a.peers.links {
		c, said := l.reported.changes.of(v)
		switch part := slices.ContainsFunc(l.processes, v.Has); {
		case l.err != nil || isDisconnected(l) || !said && l.reported.changes.outside:
		case part:
			all = append(all, changeReport{l.peer, !said, c})
		case said:
			others = append(others, changeReport{l.peer, false, c})
		}
	}
	if len(all) == 0 {
		return others
	}
	return all
}

// after returns the view after v and all known changes that follow it.
func (a *resumption) after(v view.View) view.View {
	for {
		c, ok, _ := decide(a.nextChanges(v))
		next, changed := c.Apply(v)
		if !ok || !changed {
			return v
		}
		v = next
	}
}

// rejectImpossible gives up the peers that report a change after v that cannot follow v.
func (a *resumption) rejectImpossible(v view.View) (r *job.Result) {
	for _, l := range a.peers.links {
		c, said := l.reported.changes.of(v)
		if _, follows := c.Apply(v); l.err == nil && said && !follows {
			r = cmp.Or(r, a.protocolError(l, fmt.Errorf("it reports that %v after view %d, which is impossible", c, v.Epoch)))
		}
	}
	return r
}

// contradicted returns the result of a job whose peers contradict each other, so that it is unknown
// which of them lies.
func contradicted(voices []changeReport) *job.Result {
	var all []string
	for _, v := range voices {
		if !v.silent {
			all = append(all, fmt.Sprintf("%v, says peer %s", v.change, short(v.peer)))
		}
	}
	return &job.Result{
		Status:  job.StatusLost,
		Message: "the job's peers contradict each other about what they have agreed on: " + strings.Join(all, "; "),
		Hint:    "one of these peers lies or is faulty; run the job again without that peer (--not-peer)",
	}
}
