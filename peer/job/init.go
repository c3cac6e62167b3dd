package job

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A program that uses mpj.Init calls it in all its replicas. If a replica ends successfully without
// that call, and another one of its rank has made it, the cause is not the program: one of the two
// peers lies (V4).

// Called reports whether p has called mpj.Init, according to its peer.
func (s *State) Called(p view.Process) bool {
	at := s.at(p)
	return at.initialized || at.exit != nil && at.exit.Initialized
}

// skipped reports whether p has ended successfully without having called mpj.Init.
func (s *State) skipped(p view.Process) bool {
	return !s.Called(p) && s.endedWell(p)
}

// entries returns the replicas of a rank that count: those that have called mpj.Init, and those
// that have ended without it. all is the number of replicas that count.
func (s *State) entries(rank int) (called, skipped []view.Process, all int) {
	for k := range s.view.R {
		p := view.Process{Rank: rank, Replica: k}
		switch {
		case !s.has(p):
			continue
		case s.Called(p):
			called = append(called, p)
		case s.skipped(p):
			skipped = append(skipped, p)
		}
		all++
	}
	return called, skipped, all
}

// majoritySkips reports whether most replicas of rank have ended without calling mpj.Init, so that
// the program does not use it.
func (s *State) majoritySkips(rank int) bool {
	_, skipped, all := s.entries(rank)
	return 2*len(skipped) > all
}

// skips reports whether the program does not use mpj: most replicas of rank have ended without
// calling mpj.Init. With --on-divergence warn one such replica suffices, if no replica of rank has
// called mpj.Init.
func (s *State) skips(rank int) bool {
	called, skipped, _ := s.entries(rank)
	return s.majoritySkips(rank) || s.Tolerant && len(skipped) > 0 && len(called) == 0
}

// majorityCalls reports whether most replicas of rank have called mpj.Init.
func (s *State) majorityCalls(rank int) bool {
	called, _, all := s.entries(rank)
	return 2*len(called) > all
}

// settleSkipped decides between the replicas of rank that have called mpj.Init and those that have
// ended without it, once each replica has done either. With three or more replicas, the majority is
// right.
func (s *State) settleSkipped(out *Effects, rank int) {
	called, skipped, all := s.entries(rank)
	if s.begun || len(called) == 0 || len(skipped) == 0 || len(called)+len(skipped) < all {
		return
	}
	switch {
	case all >= Quorum && 2*len(called) > all:
		for _, p := range skipped {
			s.outvote(out, p, "ended without calling mpj.Init, which most replicas of its rank have called")
		}
	case all >= Quorum && 2*len(skipped) > all:
		for _, p := range called {
			s.outvote(out, p, "waits in mpj.Init, and most replicas of its rank have ended without calling it")
		}
	case !s.Tolerant:
		s.end(out, Result{
			Status: StatusDiverged,
			Message: fmt.Sprintf("the replicas of rank %d have diverged: %s ended without calling mpj.Init, and %s called it",
				rank, s.replicas(skipped), s.replicas(called)),
			Hint: divergedHint,
		})
	}
}

// replicas lists replicas of a rank, with their peers.
func (s *State) replicas(ps []view.Process) string {
	var names []string
	for _, p := range ps {
		name := fmt.Sprintf("replica %d", p.Replica)
		if s.PeerOf != nil {
			name += " on peer " + s.PeerOf(p)
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}
