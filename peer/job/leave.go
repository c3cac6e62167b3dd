package job

import "github.com/p2pmpi/p2pmpi/internal/view"

// Leaves records that the owner of p's peer takes the machine back. P leaves once another replica
// of its rank has caught up and stays; until then the rank lacks one. So if two replicas leave at
// the same time, the second one waits until the first is replaced.
func (s *State) Leaves(p view.Process) Effects {
	var out Effects
	if state := s.state(p); s.over || state != view.Live && state != view.Finished {
		return out
	}
	s.at(p).leaving = true
	s.settle(&out)
	return out
}

// releaseLeaving lets the leaving replicas of a rank fail if another replica, which may be master, stays.
func (s *State) releaseLeaving(out *Effects, rank int) {
	counting := s.Counting(rank)
	for _, q := range counting {
		if a := s.at(q); s.mayCount(q) && !a.leaving && a.aborted == nil && (a.exit == nil || a.exit.Good()) {
			for _, p := range counting {
				if s.at(p).leaving {
					s.ask(out, p, view.Failed, "left with its peer, whose owner needs the machine")
				}
			}
			return
		}
	}
}
