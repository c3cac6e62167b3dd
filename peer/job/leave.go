package job

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Leaves records that the owner of p's peer takes the machine back. P leaves once another replica
// of its rank has caught up and stays; until then the rank lacks one. So if two replicas leave at
// the same time, the second one waits until the first is replaced.
func (w *watch) Leaves(p view.Process) step {
	var s step
	if state := w.state(p); w.over || state != view.Live && state != view.Finished {
		return s
	}
	w.at(p).leaving = true
	w.settle(&s)
	return s
}

// Leaving reports whether the owner of p's peer takes the machine back.
func (w *watch) Leaving(p view.Process) bool { return w.view.Contains(p) && w.at(p).leaving }

// dismiss releases the leaving replicas of a rank if one stays that may be master.
func (w *watch) dismiss(s *step, rank int) {
	counting := w.counting(rank)
	for _, q := range counting {
		if a := w.at(q); w.mayCount(q) && !a.leaving && a.aborted == nil && (a.exit == nil || a.exit.good()) {
			for _, p := range counting {
				if w.at(p).leaving {
					w.ask(s, p, view.Failed, "left with its peer, whose owner takes the machine back")
				}
			}
			return
		}
	}
}
