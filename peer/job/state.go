package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A State follows the processes of a running job. It decides which changes of the view to request,
// when processes may leave mpj.Init, and the result. It starts no goroutine, reads no clock and
// opens nothing; its owner passes it one Event at a time and carries out the Effects. Only Committed
// changes the view: the State requests changes, and acts when they have been agreed on (V1). There
// is one Result. The view continues to change after the result, since output files may still be collected.
type State struct {
	processes
	r     int        // initial number of replicas per rank, which healing restores
	begun bool       // all live processes may leave mpj.Init
	over  bool       // there is a result
	done  *view.View // view in which all ranks were done; nil: they are not

	expected []int  // ranks with a requested join that is not agreed on yet
	moves    []int  // by rank: how often a replica that was ahead became master
	lapsed   []bool // by rank: the user knows of a Lapsed event
	disputes disputes
	Tolerant bool // divergence is only reported to the user

	PeerOf func(view.Process) string // names the peer of a process for the user; may be nil
}

// Effects holds the actions that follow from an event, for the owner of a State to carry out.
type Effects struct {
	Propose []view.Change // changes to be agreed on
	View    *view.View    // new view, to be sent to every peer
	By      []string      // IDs of the peers at whose request View has changed
	Begin   bool          // every live process has called mpj.Init: let them leave it
	Notes   []string      // messages to the user, one sentence each
	Joined  *view.Process // a process that is in View now and may leave mpj.Init
	Healed  bool          // a process that joined late has caught up
	Result  *Result       // result of the job, which is over

	Outvoted []view.Process // processes that deviated from most replicas of their rank
}

// NewState returns the state of a job whose processes have all been started.
func NewState(n, r int) *State {
	return &State{processes: newProcesses(view.New(n, r)), r: r, moves: make([]int, n), lapsed: make([]bool, n)}
}

func (e Initialized) apply(s *State, out *Effects) {
	if s.view.Live(e.Process) {
		s.at(e.Process).initialized = true
		s.settle(out)
	}
}

// apply also accepts the end of a process whose finish has been agreed on.
func (e Exited) apply(s *State, out *Effects) {
	if !s.view.Has(e.Process) || s.at(e.Process).exit != nil {
		return
	}
	s.at(e.Process).exit = &e.Exit
	s.judge(out, e.Process)
	s.settle(out)
}

func (e Drained) apply(s *State, out *Effects) {
	if !s.view.Contains(e.Process) {
		return
	}
	s.at(e.Process).drained = true
	s.judge(out, e.Process)
	s.settle(out)
}

func (e Lost) apply(s *State, out *Effects) {
	for _, p := range e.Processes {
		if !s.view.Contains(p) { // it has yet to join
			continue
		}
		// A finished process whose output was shown does not need its peer any more.
		if state := s.state(p); state == view.Live || state == view.Finished && !s.at(p).drained {
			s.ask(out, p, view.Failed, e.Why)
		}
	}
	s.settle(out)
}

// apply records the call. It ends the job once the user has everything that the rank wrote before.
func (e Aborted) apply(s *State, out *Effects) {
	if !s.view.Live(e.Process) {
		return
	}
	r := Result{Status: e.Code, Message: fmt.Sprintf("rank %d called Abort", e.Process.Rank)}
	if e.Code < 1 || e.Code > maxStatus {
		r.Status = 1
	}
	if e.Reason != "" {
		r.Message += ": " + e.Reason
	}
	s.at(e.Process).aborted, s.at(e.Process).host = &r, e.Host
	s.judge(out, e.Process)
}

// apply opens a dispute about the message, or adds the report to it. Only the first report of a process counts.
func (e Diverged) apply(s *State, out *Effects) {
	p, d := e.Process, e.Divergence
	if !s.has(p) {
		return
	}
	if s.at(p).reports++; s.at(p).reports > MaxReports {
		return
	}
	about := s.disputes.about(messageID{p.Rank, d.Receiver, d.Context, d.Seq})
	if _, again := about.reports[p.Replica]; again {
		return
	}
	about.reports[p.Replica] = report{d, e.Text}
	about.settled = false
	if d.Differs() {
		out.Notes = append(out.Notes, e.Text)
	}
	s.settle(out)
}

// maxMoves limits how often a rank's master is replaced by a replica that is ahead. An honest replica makes such
// reports at increasing intervals.
const maxMoves = 32

// apply requests that the process become master. A false report is harmless: any replica that is up to date
// may be master.
func (e Ahead) apply(s *State, out *Effects) {
	p := e.Process
	if !s.begun || s.over || !s.view.Live(p) || s.lags(p) || s.at(p).exit != nil || s.at(p).aborted != nil {
		return
	}
	c := view.Change{Process: p, To: view.Live, Since: s.view.Since[p.Rank]}
	if _, changes := c.Apply(s.view); changes && s.moves[p.Rank] < maxMoves {
		out.Propose = []view.Change{c}
	}
}

// judge requests the final state of p if p has ended. A process that ended well finishes at once,
// since it needs nothing any more. An output leader that ended badly fails only after the user has
// its output, so that its last output is not lost. An Abort takes effect only when p is the output
// leader and the user has its output. Before the job begins, another replica that ended after Abort
// fails at once.
func (s *State) judge(out *Effects, p view.Process) {
	e, aborted := s.at(p).exit, s.at(p).aborted
	leads, drained := s.view.IsOutputLeader(p), s.at(p).drained
	switch {
	case s.state(p) != view.Live:
	case aborted != nil:
		switch {
		case leads && drained && !s.over:
			s.acceptAbort(out, p)
		case !leads && !s.begun && e != nil: // otherwise the others would wait for it in mpj.Init
			s.ask(out, p, view.Failed, "called Abort before the job began")
		}
	case e == nil:
	case e.Good():
		s.ask(out, p, view.Finished, e.String())
	case !leads || drained:
		s.ask(out, p, view.Failed, s.at(p).exit.String())
	}
}

// acceptAbort ends the job with the status that p passed to Abort, unless another replica of its rank
// contradicts p or still may: a single replica may lie. If a replica that counts has not called
// Abort, believe votes p out. If a replica has called Abort with another status, the job ends with
// that disagreement, unless s.Tolerant is set. A running replica continues without p and makes the
// same call if the program does. A replica that has ended well contradicts p even before the view
// group has agreed on its end; see disputedAbort.
func (s *State) acceptAbort(out *Effects, p view.Process) {
	verdict := s.at(p).aborted
	for _, q := range s.replicas(p.Rank) {
		if q == p {
			continue
		}
		switch other := s.at(q); {
		case s.has(q) && !s.lags(q) && (other.exit == nil || other.exit.Good()) && other.aborted == nil:
			s.outvote(out, p, "called Abort, and another replica of its rank did not")
			return
		case other.aborted != nil && other.aborted.Status != verdict.Status && !s.Tolerant:
			s.end(out, s.disagreement(p.Rank))
			return
		}
	}
	s.end(out, *verdict)
}

// judgeReplicas judges the replicas of a rank. One that ended earlier may have waited until it, or another
// replica, became the output leader.
func (s *State) judgeReplicas(out *Effects, rank int) {
	for _, p := range s.replicas(rank) {
		s.judge(out, p)
	}
}

// ask requests that p change to the given state.
func (s *State) ask(out *Effects, p view.Process, to view.State, why string) {
	if s.state(p) < to {
		s.at(p).asked, s.at(p).why = to, why
		out.Propose = append(out.Propose, view.Change{Process: p, To: to})
	}
}

// outvote requests that p fail, because it deviated from most replicas of its rank.
func (s *State) outvote(out *Effects, p view.Process, why string) {
	s.ask(out, p, view.Failed, why)
	out.Outvoted = append(out.Outvoted, p)
}

func (Resumed) apply(s *State, _ *Effects) { s.begun = true }

// Begun reports whether all live processes may leave mpj.Init.
func (s *State) Begun() bool { return s.begun }

// Over reports whether there is a result.
func (s *State) Over() bool { return s.over }

func (e Accused) apply(s *State, _ *Effects) {
	if s.view.Contains(e.Process) && s.at(e.Process).why == "" {
		s.at(e.Process).why = e.Why
	}
}

// apply changes the view, unless the change has no effect, and draws the conclusions.
func (e Committed) apply(s *State, out *Effects) {
	c := e.Change
	wasMaster := s.view.IsMaster(c.Process)
	next, changed := c.Apply(s.view)
	if !changed {
		return
	}
	out.View = &next
	switch {
	case c.Promotes():
		s.moves[c.Process.Rank]++
	case c.Joins():
		s.joined(out, c.Process, next)
		s.settle(out)
		return
	}
	s.explainAsides(c.Process, next)
	s.view = next
	if c.To == view.Failed {
		switch at := s.at(c.Process); {
		case c.Leaves() && at.leaving:
			at.why = "left with its peer, whose owner needs the machine"
		case at.why == "":
			at.why = "failed, according to the job's peers" // the peers requested it while the submitter was disconnected
		}
		out.Notes = append(out.Notes, s.failureNotice(c.Process, wasMaster))
	}
	s.requestAgain(out, c.Process.Rank)
	s.judgeReplicas(out, c.Process.Rank) // the output leader may have changed
	s.settle(out)
}

// failureNotice returns the message that p has failed. It names the new master if p was the master.
func (s *State) failureNotice(p view.Process, wasMaster bool) string {
	note := fmt.Sprintf("rank %d replica %d %s", p.Rank, p.Replica, s.reason(p))
	if m, ok := s.view.Master(p.Rank); ok && wasMaster {
		note += fmt.Sprintf("; replica %d is its master now", m.Replica)
	}
	return note
}

// apply ends the job.
func (CutOff) apply(s *State, out *Effects) {
	if s.over {
		return
	}
	r := Result{
		Status:  StatusLost,
		Message: "cut off from the majority of the job's peers, without which nothing is certain",
		Hint:    "start it again; with more than two peers, the job survives more simultaneous losses",
	}
	for _, c := range s.Asked() {
		if p := c.Process; c.To == view.Failed {
			r.Message += fmt.Sprintf("; rank %d replica %d %s", p.Rank, p.Replica, s.at(p).why)
		}
	}
	s.end(out, r)
}

// arbitrate decides all disputes that can be decided. It starts over after each vote, since a
// voted-out replica no longer counts.
func (s *State) arbitrate(out *Effects) {
	for before := -1; before != len(out.Propose); {
		before = len(out.Propose)
		for _, d := range s.disputes {
			counting := s.Counting(d.source)
			if s.over || s.Tolerant || !d.open(counting) {
				continue
			}
			odd, why, split := d.decide(counting, len(s.Counting(d.receiver.Rank)))
			for _, p := range odd {
				s.outvote(out, p, why)
			}
			if split {
				s.end(out, *diverged(d.source, d.evidence(counting)))
			}
		}
	}
}

// settle draws the conclusions from the current state: disputes, lost and finished ranks, the job's
// result, and the return of mpj.Init.
func (s *State) settle(out *Effects) {
	if s.arbitrate(out); s.over {
		return
	}
	done := 0
	for rank := range s.view.N {
		s.failLagging(out, rank)
		s.releaseLeaving(out, rank)
		if s.settleSkipped(out, rank); s.over {
			return
		}
		if _, ok := s.view.OutputLeader(rank); !ok {
			s.end(out, s.lost(rank))
			return
		}
		if s.isDone(rank) {
			done++
		}
	}
	if done == s.view.N {
		at := s.view
		s.done = &at
		s.end(out, s.Answer())
		return
	}
	s.settleInit(out)
}

// OutputView returns the view that decides whose output counts: the view in which all ranks were done, or else
// the current view. A process may still fail after the job is done, but the user has received its output.
func (s *State) OutputView() view.View {
	if s.done != nil {
		return *s.done
	}
	return s.view
}

// isDone reports whether a replica of rank has finished and the user has all its output. If the job
// has not begun, or the replica never called mpj.Init, it counts only if the program does not use
// mpj (see skips).
func (s *State) isDone(rank int) bool {
	return slices.ContainsFunc(s.replicas(rank), func(p view.Process) bool {
		return s.view.State(p) == view.Finished && s.at(p).drained && (s.begun && s.Called(p) || s.skips(rank))
	})
}

// skips reports whether the program does not use mpj: most replicas of rank have ended without
// calling mpj.Init. With --on-divergence warn one such replica suffices, if no replica of rank has
// called mpj.Init.
func (s *State) skips(rank int) bool {
	e := s.entries(rank)
	return e.majoritySkips() || s.Tolerant && len(e.skipped) > 0 && len(e.called) == 0
}

// settleSkipped decides between the replicas of rank that have called mpj.Init and those that have
// ended without that call, once each replica has done either. With three or more replicas, the
// majority is right.
func (s *State) settleSkipped(out *Effects, rank int) {
	e := s.entries(rank)
	if s.begun || !e.split() {
		return
	}
	odd, why := e.minority()
	for _, p := range odd {
		s.outvote(out, p, why)
	}
	if len(odd) == 0 && !s.Tolerant {
		s.end(out, *diverged(rank, fmt.Sprintf("%s ended without calling mpj.Init, and %s called it", s.names(e.skipped), s.names(e.called))))
	}
}

// names lists replicas of a rank, with their peers.
func (s *State) names(ps []view.Process) string {
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

// settleInit lets all processes leave mpj.Init, or ends the job if they never can.
func (s *State) settleInit(out *Effects) {
	if s.begun {
		return
	}
	waiting, gone, missing := -1, -1, false
	for _, p := range s.view.Processes() {
		switch {
		case s.isDone(p.Rank):
			gone = p.Rank
		case s.view.State(p) == view.Finished:
			missing = true
		case !s.view.Live(p):
		case !s.at(p).initialized:
			missing = true
		case s.entries(p.Rank).majorityCalls():
			waiting = p.Rank
		}
	}
	switch {
	case waiting < 0:
	case gone >= 0:
		s.end(out, Result{
			Status:  StatusLost,
			Message: fmt.Sprintf("rank %d ended without calling mpj.Init, while rank %d waits in it", gone, waiting),
		})
	case !missing:
		s.begun = true
		out.Begin = true
	}
}

// Answer returns the result of a job whose ranks are all done: success, unless a dispute is
// undecided. Replicas may still report a dispute before the answer is confirmed.
func (s *State) Answer() Result {
	for _, d := range s.disputes {
		if counting := s.Counting(d.source); !s.Tolerant && d.open(counting) && !d.harmless(counting) {
			return *diverged(d.source, d.evidence(counting))
		}
	}
	for rank := range s.view.N {
		if !s.Tolerant && s.disputedAbort(rank) {
			return s.disagreement(rank)
		}
	}
	return Result{Status: StatusOK}
}

func (s *State) end(out *Effects, r Result) {
	s.over = true
	out.Result = &r
}

// Decided reports whether the result of the job needs no further change of the view, if v is the view:
// a rank is lost, or the output leader of each rank has finished and can supply the rank's output. v
// follows from the current view.
func (s *State) Decided(v view.View) bool {
	decided := true
	for rank := range v.N {
		p, ok := v.OutputLeader(rank)
		if !ok {
			return true
		}
		given := s.view.Contains(p) && s.state(p) == view.Failed && !s.at(p).drained
		decided = decided && v.State(p) == view.Finished && !given
	}
	return decided
}
