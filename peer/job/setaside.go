package job

import "github.com/p2pmpi/p2pmpi/internal/view"

// SetAside requests that p, whose peer is silent, not count for the decisions of its rank, unless p
// is its master.
func (s *State) SetAside(p view.Process) Effects {
	s.at(p).setAside = view.Change{Process: p, To: view.Live, Aside: true, At: s.view.AsideChanged(p)}
	return s.request(s.at(p).setAside)
}

// UpToDate handles the report of p's master that p, which has been set aside since the given epoch,
// lacks nothing any more. The master's term began in epoch term.
func (s *State) UpToDate(p view.Process, since, term uint64) Effects {
	if !s.view.Live(p) || since == 0 || term == 0 {
		return Effects{}
	}
	s.at(p).upToDate = view.Change{Process: p, To: view.Live, Since: term, At: since}
	return s.request(s.at(p).upToDate)
}

// requestAgain repeats the requests by which replicas of a rank count again. Their UpToDate reports
// may have arrived before the change that set them aside.
func (s *State) requestAgain(out *Effects, rank int) {
	for _, p := range s.replicas(rank) {
		if c := s.at(p).upToDate; c.At != 0 {
			out.Propose = append(out.Propose, s.request(c).Propose...)
		}
	}
}

// request requests c, while the job runs, if it changes the view.
func (s *State) request(c view.Change) (out Effects) {
	if _, changes := c.Apply(s.view); changes && s.begun && !s.over && s.state(c.Process) == view.Live {
		out.Propose = []view.Change{c}
	}
	return out
}

// explainAsides records the reason for the replicas of p's rank that fail together with p in the next view.
func (s *State) explainAsides(p view.Process, next view.View) {
	for _, q := range s.view.LiveReplicas(p.Rank) {
		if q != p && next.State(q) == view.Failed && s.at(q).why == "" {
			s.at(q).why = "did not answer when its master failed, and may lack outcomes of its rank"
		}
	}
}
