package job

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Lacks reports whether a rank needs another replica: it has fewer replicas that stay than at the
// start. A rank that is nearly done needs none. The same holds for a rank whose master lacks the
// data for a new replica. A process that ended by itself, or exceeded a limit of its peer's owner,
// is not replaced, since the next one would end in the same way.
func (w *watch) Lacks(rank int) bool {
	master, ok := w.view.Master(rank)
	if !w.begun || w.over || !ok || w.at(master).unkept {
		return false
	}
	live, staying, done := 0, 0, 0
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		a := w.at(p)
		switch state := w.state(p); {
		case state == view.Finished || state == view.Live && (a.exit != nil || a.aborted != nil):
			return false
		case state == view.Live && !a.joining:
			live++
			if !a.leaving {
				staying++
			}
		case state == view.Failed && a.aborted != nil:
			done++
		case state == view.Failed && a.exit != nil && (a.exit.byItself() && !a.joining || a.exit.Limit != ""):
			done++
		}
	}
	return live > 0 && staying+done < w.r
}

// Join requests that process p, which has been started and has called mpj.Init, join its rank.
func (w *watch) Join(p view.Process) step {
	var s step
	if next, ok := w.view.Joiner(p.Rank); ok && next == p && w.Lacks(p.Rank) && !w.Expects(p.Rank) {
		w.expected = append(slices.Clone(w.expected), p.Rank)
		s.Propose = []view.Change{{Process: p, To: view.Live}}
	}
	return s
}

// Forgo withdraws the request of Join for rank, which no peer has been told of.
func (w *watch) Forgo(rank int) {
	w.expected = slices.DeleteFunc(slices.Clone(w.expected), func(r int) bool { return r == rank })
}

// Expects reports whether a requested join to rank has yet to be agreed on.
func (w *watch) Expects(rank int) bool { return slices.Contains(w.expected, rank) }

// joined enters p, which has joined in the next view, into the watch.
func (w *watch) joined(s *step, p view.Process, next view.View) {
	before := *w
	w.view, w.procs = next, make([]watched, next.N*next.R)
	for _, q := range before.view.Processes() {
		*w.at(q) = *before.at(q)
	}
	*w.at(p) = watched{initialized: true, joining: true}
	w.Forgo(p.Rank)
	s.Joined = &p
}

// Healed records that p, which has joined, has caught up with the others of its rank.
func (w *watch) Healed(p view.Process) step {
	var s step
	if w.lags(p) {
		w.at(p).joining = false
		s.Healed = true
		w.settle(&s)
	}
	return s
}

// Unkept records that p cannot bring a new replica of its rank up to date any more.
func (w *watch) Unkept(p view.Process, why string) step {
	var s step
	if a := w.at(p); w.view.Live(p) && !a.unkept {
		a.unkept = true
		s.Notes = append(s.Notes, fmt.Sprintf("rank %d replica %d cannot help to replace a lost replica any more: %s", p.Rank, p.Replica, why))
	}
	return s
}

// Lapsed records that p cannot bring a new replica of its rank up to date before the program's next
// checkpoint. It notes that once per rank.
func (w *watch) Lapsed(p view.Process, why string) step {
	var s step
	if w.view.Live(p) && !w.lapsed[p.Rank] {
		w.lapsed[p.Rank] = true
		s.Notes = append(s.Notes, fmt.Sprintf("rank %d cannot replace a lost replica from its last checkpoint before it has made another: %s", p.Rank, why))
	}
	return s
}

// lags reports whether p is live and has yet to catch up with the others of its rank. A process
// that has ended must have caught up.
func (w *watch) lags(p view.Process) bool {
	return w.view.Live(p) && w.at(p).joining && w.at(p).exit == nil
}

// Lags reports whether a process that joined rank has yet to catch up.
func (w *watch) Lags(rank int) bool {
	return slices.ContainsFunc(w.view.LiveReplicas(rank), w.lags)
}

// forsake fails the lagging processes of rank if no other replica is left to bring them up to date.
// Until that is agreed on, one of them may still report that it is up to date.
func (w *watch) forsake(s *step, rank int) {
	var lagging []view.Process
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		switch {
		case w.lags(p):
			lagging = append(lagging, p)
		case w.view.Has(p):
			return
		}
	}
	for _, p := range lagging {
		w.ask(s, p, view.Failed, "had yet to be brought up to date")
	}
}
