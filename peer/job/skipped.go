package job

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A program that uses mpj.Init calls it in all its replicas. If a replica ends successfully without
// that call, and another one of its rank has made it, the cause is not the program: one of the two
// peers lies (V4).

// called reports whether p has called mpj.Init, according to its peer.
func (w *watch) called(p view.Process) bool {
	at := w.at(p)
	return at.initialized || at.exit != nil && at.exit.Initialized
}

// skipped reports whether p has ended successfully without having called mpj.Init.
func (w *watch) skipped(p view.Process) bool {
	return !w.called(p) && w.endedWell(p)
}

// entries returns the replicas of a rank that count: those that have called mpj.Init, and those
// that have ended without it. all is the number of replicas that count.
func (w *watch) entries(rank int) (called, skipped []view.Process, all int) {
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		switch {
		case !w.has(p):
			continue
		case w.called(p):
			called = append(called, p)
		case w.skipped(p):
			skipped = append(skipped, p)
		}
		all++
	}
	return called, skipped, all
}

// mostSkip reports whether most replicas of rank have ended without calling mpj.Init, so that the
// program does not use it.
func (w *watch) mostSkip(rank int) bool {
	_, skipped, all := w.entries(rank)
	return 2*len(skipped) > all
}

// skips reports whether the program does not use mpj: most replicas of rank have ended without calling
// mpj.Init. With --on-divergence warn one such replica suffices, if no replica of rank has called mpj.Init.
func (w *watch) skips(rank int) bool {
	called, skipped, _ := w.entries(rank)
	return w.mostSkip(rank) || w.tolerant && len(skipped) > 0 && len(called) == 0
}

// mostCall reports whether most replicas of rank have called mpj.Init.
func (w *watch) mostCall(rank int) bool {
	called, _, all := w.entries(rank)
	return 2*len(called) > all
}

// settleSkipped decides between the replicas of rank that have called mpj.Init and those that have
// ended without it, once each replica has done either. With three or more replicas, the majority is
// right.
func (w *watch) settleSkipped(s *step, rank int) {
	called, skipped, all := w.entries(rank)
	if w.begun || len(called) == 0 || len(skipped) == 0 || len(called)+len(skipped) < all {
		return
	}
	switch {
	case all >= quorum && 2*len(called) > all:
		for _, p := range skipped {
			w.outvote(s, p, "ended without calling mpj.Init, which most replicas of its rank have called")
		}
	case all >= quorum && 2*len(skipped) > all:
		for _, p := range called {
			w.outvote(s, p, "waits in mpj.Init, and most replicas of its rank have ended without calling it")
		}
	case !w.tolerant:
		w.end(s, Result{
			Status: StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: %s ended without calling mpj.Init, and %s called it",
				rank, w.replicas(skipped), w.replicas(called)),
			Hint: divergedHint,
		})
	}
}

// replicas lists replicas of a rank, with their peers.
func (w *watch) replicas(ps []view.Process) string {
	var names []string
	for _, p := range ps {
		name := fmt.Sprintf("replica %d", p.Replica)
		if w.peerOf != nil {
			name += " on peer " + w.peerOf(p)
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}
