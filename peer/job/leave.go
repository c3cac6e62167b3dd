package job

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Leaves says that the owner of p's peer takes the machine back. P goes when another replica
// of its rank is there that has caught up and stays; until then the rank lacks one. So of
// two that leave at the same time the second waits for the first to be replaced.
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

// dismiss releases the leaving replicas of a rank, if one stays that may be master.
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
