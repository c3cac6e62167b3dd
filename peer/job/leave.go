package job

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// apply lets the process leave once another replica of its rank has caught up and stays; until then the
// rank lacks one. So if two replicas leave at the same time, the second one waits until the first is replaced.
func (e Leaves) apply(s *State, out *Effects) {
	if state := s.state(e.Process); s.over || state != view.Live && state != view.Finished {
		return
	}
	s.at(e.Process).leaving = true
	s.settle(out)
}

// releaseLeaving requests that the leaving replicas of a rank leave if another replica, which may be master,
// stays. The view may be out of date: the other peers may have failed that replica. So the request names it. If
// the request has no effect for that reason, it is made again as soon as a replica stays.
func (s *State) releaseLeaving(out *Effects, rank int) {
	counting := s.Counting(rank)
	for _, p := range counting {
		if _, possible := s.at(p).leave.Apply(s.view); !possible {
			s.at(p).leave = view.Change{}
		}
	}
	i := slices.IndexFunc(counting, s.maySucceed)
	if i < 0 {
		return
	}
	for _, p := range counting {
		if s.at(p).leaving && !s.at(p).leave.Leaves() {
			s.at(p).leave = view.Change{Process: p, To: view.Failed, At: uint64(counting[i].Replica) + 1}
			out.Propose = append(out.Propose, s.at(p).leave)
		}
	}
}

// maySucceed reports whether p, which has not failed, can continue without the replicas of its rank that leave.
func (s *State) maySucceed(p view.Process) bool {
	a := s.at(p)
	return s.mayCount(p) && !a.leaving && a.aborted == nil && (a.exit == nil || a.exit.Good())
}
