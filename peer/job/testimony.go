package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// A process that takes no part in agreeing on views has them from the job's peers. Each
// tells all changes, from the first on, and any of them may lie: so a change is taken once
// more than half of those say the same that are here and have a part in the view before it.
// Of one peer alone, the word is taken.

// A testimony is what one peer says that has been agreed on.
type testimony struct {
	changes []viewgroup.Change // the first makes the view of epoch 2
	outside bool               // it hears of no more
}

// maxChanges is more than an honest peer ever tells.
const maxChanges = 1 << 16

// add takes what the peer says next.
func (t *testimony) add(m *jobpb.Change) error {
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

// of returns what the peer says has been agreed on after a view.
func (t *testimony) of(v view.View) (c viewgroup.Change, said bool) {
	if i := v.Epoch - 1; i < uint64(len(t.changes)) {
		return t.changes[i], true
	}
	return c, false
}

// A voice is what one peer says of the change that follows on a view.
type voice struct {
	peer   p2ppeer.ID
	silent bool // it has yet to say something
	change viewgroup.Change
}

// errDisputed says that the peers of a job contradict each other.
var errDisputed = errors.New("they contradict each other")

// decide returns the change that more than half of the voices name. ok is false while there
// may be one, and the error is errDisputed when there is none.
func decide(voices []voice) (c viewgroup.Change, ok bool, err error) {
	votes, silent, most := make(map[viewgroup.Change]int), 0, 0
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

// naming returns the peers whose reports name a change.
func naming(voices []voice, c viewgroup.Change) (ids []p2ppeer.ID) {
	for _, v := range voices {
		if !v.silent && v.change == c {
			ids = append(ids, v.peer)
		}
	}
	return ids
}

// voices returns what those who are here say of the change that follows on v: who runs
// something in v, and will hear of that change if it has not. Where there is nobody, those
// who have failed before or have come later say what they know.
func (e *execution) voices(v view.View) (all []voice) {
	var others []voice
	for _, l := range e.links {
		c, said := l.testimony.of(v)
		switch part := slices.ContainsFunc(l.processes, v.Has); {
		case l.err != nil || isAway(l) || !said && l.testimony.outside:
		case part:
			all = append(all, voice{l.peer, !said, c})
		case said:
			others = append(others, voice{l.peer, false, c})
		}
	}
	if len(all) == 0 {
		return others
	}
	return all
}

// after returns the view after v and all changes that are known to follow on it.
func (e *execution) after(v view.View) view.View {
	for {
		c, ok, _ := decide(e.voices(v))
		next, changed := c.Apply(v)
		if !ok || !changed {
			return v
		}
		v = next
	}
}

// refute gives up the peers that say of a change that it follows on v, which it cannot.
func (e *execution) refute(v view.View) (r *Result) {
	for _, l := range e.links {
		c, said := l.testimony.of(v)
		if _, follows := c.Apply(v); l.err == nil && said && !follows {
			r = cmp.Or(r, e.breach(l, fmt.Errorf("it says that %v after view %d, which cannot be", c, v.Epoch)))
		}
	}
	return r
}

// contradicted is the result of a job the peers of which contradict each other: nobody can tell
// who of them lies.
func contradicted(voices []voice) *Result {
	var all []string
	for _, v := range voices {
		if !v.silent {
			all = append(all, fmt.Sprintf("%v, says peer %s", v.change, short(v.peer)))
		}
	}
	return &Result{
		Status:  StatusLost,
		Message: "the job's peers contradict each other about what they have agreed on: " + strings.Join(all, "; "),
		Hint:    "one of them lies or is broken; start it again without it",
	}
}
