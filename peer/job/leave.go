package job

import "github.com/p2pmpi/p2pmpi/internal/view"

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
// stays. The view may be out of date: the other peers may have failed that replica. So the request has no
// effect in a later view, for which it is made again.
func (s *State) releaseLeaving(out *Effects, rank int) {
	counting := s.Counting(rank)
	for _, q := range counting {
		if a := s.at(q); s.mayCount(q) && !a.leaving && a.aborted == nil && (a.exit == nil || a.exit.Good()) {
			for _, p := range counting {
				if c := (view.Change{Process: p, To: view.Failed, At: s.view.Epoch}); s.at(p).leaving && s.at(p).leave != c {
					s.at(p).leave = c
					out.Propose = append(out.Propose, c)
				}
			}
			return
		}
	}
}
