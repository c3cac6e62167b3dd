package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// checkBegin checks that the job begins once, with processes that have called mpj.Init.
func (w *world) checkBegin() error {
	if w.begun {
		return errors.New("the job begins twice")
	}
	for i := range w.hosts {
		if h := &w.hosts[i]; h.used && w.sub.state.View().Live(h.p) && !h.called {
			return fmt.Errorf("the job begins, and %v has not called mpj.Init", h.p)
		}
	}
	return nil
}

// checkRequest checks that the submitter fails only processes that have failed, or that the job does not need.
func (w *world) checkRequest(c view.Change) error {
	i := w.hostOf(c.Process)
	if i < 0 {
		return fmt.Errorf("%v is requested, and no peer runs the process", c)
	}
	h := &w.hosts[i]
	switch {
	case c.To == view.Finished && (h.exit == nil || !h.exit.Good()):
		return fmt.Errorf("%v is requested, and it has not ended well", c)
	case c.Leaves() && !h.leaves:
		return fmt.Errorf("%v is requested, and its owner does not want the machine", c)
	case c.To == view.Failed && h.alive && w.sub.state.lags(h.p) && w.unneeded(h):
		h.stale = true
		return nil
	case c.To != view.Failed || c.Leaves() || !h.alive || h.exit != nil && !h.exit.Good() || h.hangs || h.wrong:
		return nil
	}
	return fmt.Errorf("%v is requested, and the process has not failed", c)
}

// unneeded reports whether the rank of a process that is behind is done, or has no process that can bring it up to
// date.
func (w *world) unneeded(h *host) bool {
	v := w.sub.state.View()
	return w.others(h, func(q *host) bool { return v.State(q.p) == view.Finished && q.exit != nil && q.exit.Good() }) ||
		!w.others(h, func(q *host) bool { return v.Has(q.p) && !q.behind })
}

// checkLeave checks that a process which leaves has another one of its rank in the view that can continue.
func (w *world) checkLeave(p view.Process) error {
	h := &w.hosts[w.hostOf(p)]
	if w.others(h, func(q *host) bool { return w.view.Has(q.p) && !q.behind && w.view.AsideSince(q.p) == 0 }) {
		return nil
	}
	return fmt.Errorf("R7: %v leaves, and no other replica of its rank can continue", p)
}

// others reports whether the condition holds for another process of the rank.
func (w *world) others(h *host, condition func(q *host) bool) bool {
	return slices.ContainsFunc(w.rankOf(h.p.Rank), func(q *host) bool { return q.p != h.p && condition(q) })
}

// checkReplicas checks that no rank keeps more replicas than it had at the start.
func (w *world) checkReplicas() error {
	if w.sub.cut || w.sub.resumed && !w.caughtUp() {
		return nil
	}
	for rank := range w.n {
		stay := 0
		for _, h := range w.rankOf(rank) {
			if v := w.sub.state.View(); v.State(h.p) != view.Vacant && w.sub.state.has(h.p) && h.alive && !h.leaves && (h.exit == nil || h.exit.Good()) {
				stay++
			}
		}
		if stay > w.r {
			return fmt.Errorf("rank %d has %d replicas", rank, stay)
		}
	}
	return nil
}

// checkIdle checks a state in which only programs have something to do: the job has reacted to all faults.
func (w *world) checkIdle() error {
	if w.sub == nil || !w.begun || w.sub.state.Over() || w.sub.cut || w.sub.resumed && !w.caughtUp() {
		return nil
	}
	for rank := range w.n {
		if err := w.checkRank(rank); err != nil {
			return err
		}
	}
	return nil
}

// checkRank checks that a rank that lacks a replica gets a new one from a free peer, that a replica that is set aside
// returns, and that a replica whose owner takes the machine back leaves.
func (w *world) checkRank(rank int) error {
	stay, ended, hosts := 0, false, w.rankOf(rank)
	for _, h := range hosts {
		lives := w.view.Live(h.p)
		ended = ended || h.exit != nil && !h.failed()
		switch {
		case lives && (!h.alive || h.failed()):
			return fmt.Errorf("%v has crashed, and the view does not change", h.p)
		case lives && h.runs() && w.view.AsideSince(h.p) != 0 && w.master(rank) != nil:
			return fmt.Errorf("%v has all outcomes of its rank, and stays aside", h.p)
		case lives && !h.leaves && !h.behind:
			stay++
		}
	}
	for _, h := range hosts {
		if w.view.Live(h.p) && h.leaves && stay > 0 && !ended {
			return fmt.Errorf("%v has to leave, and stays although another replica does", h.p)
		}
	}
	someLeave := slices.ContainsFunc(hosts, func(h *host) bool { return w.view.Live(h.p) && h.leaves })
	isFree := func(h host) bool { return !h.used && h.alive }
	if (stay > 0 || someLeave) && stay < w.r && w.r > 1 && !ended && slices.ContainsFunc(w.hosts, isFree) {
		return fmt.Errorf("rank %d has %d replicas, and no other one is found", rank, stay)
	}
	return nil
}

// end checks the result of the job.
func (w *world) end(r Result) error {
	if w.result != nil {
		return fmt.Errorf("the job ends twice: %+v, %+v", *w.result, r)
	}
	w.result = &r
	switch r.Status {
	case StatusOK:
		return w.checkAnswer()
	case StatusDiverged:
		return w.checkDiverged(r)
	case StatusLost:
		return w.checkLost(r)
	case abortStatus:
		return w.checkAborted(r)
	}
	return fmt.Errorf("the job ends with %+v", r)
}

// checkLost checks that a rank is lost, and that the message names it, if a peer is left.
func (w *world) checkLost(r Result) error {
	left := slices.ContainsFunc(w.hosts, func(h host) bool { return h.known && h.alive })
	for rank := range w.n {
		if w.isLost(rank) && (!left || strings.Contains(r.Message, fmt.Sprintf("rank %d ", rank))) {
			return nil
		}
	}
	return fmt.Errorf("R7: the job ends with %+v, and a replica of that rank lives", r)
}

// checkAborted checks that the program has called Abort, and that the user has received the lines before that,
// unless all replicas are lost.
func (w *world) checkAborted(r Result) error {
	for rank := range w.n {
		if w.aborts && strings.Contains(r.Message, fmt.Sprintf("rank %d called Abort", rank)) && (strings.HasPrefix(w.text(rank), text[0]) || w.isLost(rank)) {
			return nil
		}
	}
	return fmt.Errorf("R6: the job ends with %+v, and the user has received %q", r, w.user)
}

// checkAnswer checks that the user has received the whole output of each rank, unless all replicas that computed
// it are lost.
func (w *world) checkAnswer() error {
	for rank := range w.n {
		if got := w.text(rank); got != strings.Join(text, "") && !(w.spoilt(rank) && w.isLost(rank)) {
			return fmt.Errorf("R6: the job is done, and the user has received %q of rank %d", got, rank)
		}
	}
	return nil
}

// checkDiverged checks that replicas have differed, and that fewer than Quorum of them were left.
func (w *world) checkDiverged(r Result) error {
	for rank := range w.n {
		honest, differ := 0, false
		for _, h := range w.rankOf(rank) {
			differ = differ || h.hangs || h.wrong
			if !h.hangs && !h.wrong && h.alive && !h.behind {
				honest++
			}
		}
		if differ && (honest+1 < Quorum || strings.Contains(r.Message, "user has received")) {
			return nil
		}
	}
	return fmt.Errorf("the job ends with %+v, and its replicas have not diverged", r)
}

// isLost reports whether no replica of a rank is left that computes its output.
func (w *world) isLost(rank int) bool {
	return !slices.ContainsFunc(w.rankOf(rank), func(h *host) bool {
		return h.alive && !h.failed() && !h.behind && !h.wrong && !h.hangs && !h.stale && !(h.leaves && w.view.State(h.p) == view.Failed) &&
			w.view.State(h.p) != view.Vacant
	})
}
