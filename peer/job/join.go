package job

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Lacks reports whether a rank needs another replica: it has fewer replicas that stay than at the
// start. A rank that is nearly done needs no other replica, and a rank whose master lacks the data
// for a new replica cannot get one. A process that ended by itself, or exceeded a limit of its peer's
// owner, is not replaced, since the next one would end in the same way.
func (s *State) Lacks(rank int) bool {
	master, ok := s.view.Master(rank)
	if !s.begun || s.over || !ok || s.at(master).unkept {
		return false
	}
	live, staying, done := 0, 0, 0
	for _, p := range s.replicas(rank) {
		a := s.at(p)
		switch state := s.state(p); {
		case state == view.Finished || state == view.Live && (a.exit != nil || a.aborted != nil):
			return false
		case state == view.Live && !a.joining:
			live++
			if !a.leaving {
				staying++
			}
		case state == view.Failed && a.aborted != nil:
			done++
		case state == view.Failed && a.exit != nil && (a.exit.endedByItself() && !a.joining || a.exit.Limit != ""):
			done++
		}
	}
	return live > 0 && staying+done < s.r
}

// apply requests that the recruit join its rank.
func (e Recruited) apply(s *State, out *Effects) {
	p := e.Process
	if next, ok := s.view.Joiner(p.Rank); ok && next == p && s.Lacks(p.Rank) && !s.JoinPending(p.Rank) {
		s.expected = append(slices.Clone(s.expected), p.Rank)
		out.Propose = []view.Change{{Process: p, To: view.Live}}
	}
}

func (e JoinWithdrawn) apply(s *State, _ *Effects) { s.forgetJoin(e.Rank) }

// forgetJoin removes the pending request that a recruit join rank.
func (s *State) forgetJoin(rank int) {
	s.expected = slices.DeleteFunc(slices.Clone(s.expected), func(r int) bool { return r == rank })
}

// JoinPending reports whether a requested join to rank is not agreed on yet.
func (s *State) JoinPending(rank int) bool { return slices.Contains(s.expected, rank) }

// joined enters p, which has joined in the next view, into the state.
func (s *State) joined(out *Effects, p view.Process, next view.View) {
	before := s.processes
	s.processes = newProcesses(next)
	for _, q := range before.view.Processes() {
		*s.at(q) = *before.at(q)
	}
	*s.at(p) = watched{initialized: true, joining: true}
	s.forgetJoin(p.Rank)
	out.Joined = &p
}

func (e Healed) apply(s *State, out *Effects) {
	if s.lags(e.Process) {
		s.at(e.Process).joining = false
		out.Healed = true
		s.settle(out)
	}
}

func (e Unkept) apply(s *State, out *Effects) {
	p := e.Process
	if a := s.at(p); s.view.Live(p) && !a.unkept {
		a.unkept = true
		out.Notes = append(out.Notes, fmt.Sprintf("rank %d replica %d can no longer help to replace a lost replica: %s", p.Rank, p.Replica, e.Why))
	}
}

// apply tells the user once per rank.
func (e Lapsed) apply(s *State, out *Effects) {
	if rank := e.Process.Rank; s.view.Live(e.Process) && !s.lapsed[rank] {
		s.lapsed[rank] = true
		out.Notes = append(out.Notes, fmt.Sprintf("rank %d cannot replace a lost replica from its last checkpoint before it has made another: %s", rank, e.Why))
	}
}

// failLagging fails the lagging processes of rank if the rank is done, or if no other replica is left
// to bring them up to date. A live replica may not be able to: its peer may conceal that it has ended,
// and the other ranks would wait for the lagging process. Until the failure is agreed on, a lagging
// process may still report that it is up to date.
func (s *State) failLagging(out *Effects, rank int) {
	why := "had yet to be brought up to date"
	done := s.isDone(rank)
	if done {
		why += whenDone
	}
	var lagging []view.Process
	for _, p := range s.replicas(rank) {
		switch {
		case s.lags(p):
			lagging = append(lagging, p)
		case s.view.Has(p) && !done:
			return
		}
	}
	for _, p := range lagging {
		s.ask(out, p, view.Failed, why)
	}
}

// whenDone ends the reason why a process failed that its rank no longer needs.
const whenDone = " when its rank was done"
