package job

import "github.com/p2pmpi/p2pmpi/internal/view"

// apply requests that the process not count for the decisions of its rank, unless it is the master.
func (e Unresponsive) apply(s *State, out *Effects) {
	p := e.Process
	s.at(p).setAside = view.Change{Process: p, To: view.Live, Aside: true, At: s.view.AsideChanged(p)}
	s.request(out, s.at(p).setAside)
}

// apply requests that the process count again.
func (e UpToDate) apply(s *State, out *Effects) {
	p := e.Process
	if !s.view.Live(p) || e.Since == 0 || e.Term == 0 {
		return
	}
	s.at(p).upToDate = view.Change{Process: p, To: view.Live, Since: e.Term, At: e.Since}
	s.request(out, s.at(p).upToDate)
}

// requestAgain repeats the requests by which replicas of a rank count again. Their UpToDate reports
// may have arrived before the change that set them aside.
func (s *State) requestAgain(out *Effects, rank int) {
	for _, p := range s.replicas(rank) {
		if c := s.at(p).upToDate; c.At != 0 {
			s.request(out, c)
		}
	}
}

// request requests c, while the job runs, if it changes the view.
func (s *State) request(out *Effects, c view.Change) {
	if _, changes := c.Apply(s.view); changes && s.begun && !s.over && s.state(c.Process) == view.Live {
		out.Propose = append(out.Propose, c)
	}
}

// explainAsides records the reason for the replicas of p's rank that fail together with p in the next view.
func (s *State) explainAsides(p view.Process, next view.View) {
	for _, q := range s.view.LiveReplicas(p.Rank) {
		if q != p && next.State(q) == view.Failed && s.at(q).why == "" {
			s.at(q).why = "did not answer when its master failed, and may lack outcomes of its rank"
		}
	}
}
