package job

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A State follows the processes of a running job. It decides which changes of the view to request,
// when processes may leave mpj.Init, and the result. It starts no goroutine, reads no clock and
// opens nothing; its owner passes it one event at a time and carries out the effects. Only Committed
// changes the view: the State requests changes, and acts when they have been agreed on (V1). There
// is one Result. The view continues to change after it, since output files may still be collected.
type State struct {
	view  view.View
	procs []watched
	r     int  // initial number of replicas per rank, which healing restores
	begun bool // all live processes may leave mpj.Init
	over  bool // there is a result

	expected []int  // ranks with a requested join that is not agreed on yet
	moves    []int  // by rank: how often a replica that was ahead became master
	lapsed   []bool // by rank: the user was told; see Lapsed
	disputes []*dispute
	Tolerant bool // divergence is only reported to the user

	PeerOf func(view.Process) string // names the peer of a process for the user; nil: no names
}

// watched is the state of one process.
type watched struct {
	initialized bool
	unkept      bool // cannot bring a new replica up to date any more
	leaving     bool // its owner takes the machine back; see Leaves
	joining     bool // joined late and has not caught up with its rank yet
	exit        *Exit
	aborted     *Result // result of the job, if the process called Abort
	host        string  // name of its peer, if the process called Abort
	drained     bool    // the user has all its output
	reports     int     // number of its divergence reports; see Diverged

	setAside view.Change // the change last requested to set it aside
	upToDate view.Change // the change by which it counts again, according to its last UpToDate report

	asked view.State // state that was requested for it
	why   string     // reason for a failure or end, as the rest of a sentence
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
	return &State{view: view.New(n, r), r: r, procs: make([]watched, n*r), moves: make([]int, n), lapsed: make([]bool, n)}
}

// View returns the current view, the latest one agreed on.
func (s *State) View() view.View { return s.view }

func (s *State) at(p view.Process) *watched { return &s.procs[p.Rank*s.view.R+p.Replica] }

// state returns the state that p has once all requested changes have been agreed on. A request
// fails only if the whole job ends.
func (s *State) state(p view.Process) view.State { return max(s.view.State(p), s.at(p).asked) }

// has reports whether p is still live or finished once all requested changes have been agreed on.
func (s *State) has(p view.Process) bool {
	state := s.state(p)
	return state == view.Live || state == view.Finished
}

// Asked returns the requested changes of processes that end, as far as they are not agreed on yet.
func (s *State) Asked() (changes []view.Change) {
	for _, p := range s.view.Processes() {
		if to := s.at(p).asked; to > s.view.State(p) {
			changes = append(changes, view.Change{Process: p, To: to})
		}
	}
	return changes
}

// Initialized records that p has called mpj.Init.
func (s *State) Initialized(p view.Process) Effects {
	var out Effects
	if !s.view.Live(p) {
		return out
	}
	s.at(p).initialized = true
	s.settle(&out)
	return out
}

// Exited handles the report of p's peer that p has ended (F2). The report may arrive after p's
// finish has been agreed on.
func (s *State) Exited(p view.Process, e Exit) Effects {
	var out Effects
	if !s.view.Has(p) || s.at(p).exit != nil {
		return out
	}
	s.at(p).exit = &e
	s.judge(&out, p)
	s.settle(&out)
	return out
}

// Drained records that the user has all output of p, whose streams are closed. It is called only
// for processes that are, or have been, the output leader of their rank (view.OutputLeader).
func (s *State) Drained(p view.Process) Effects {
	var out Effects
	if !s.view.Contains(p) {
		return out
	}
	s.at(p).drained = true
	s.judge(&out, p)
	s.settle(&out)
	return out
}

// Lost handles the loss of the processes ps together with their peer; why is the rest of a sentence
// that begins with the process.
func (s *State) Lost(ps []view.Process, why string) Effects {
	var out Effects
	for _, p := range ps {
		if !s.view.Contains(p) { // it has yet to join
			continue
		}
		// A finished process whose output was shown does not need its peer any more.
		if state := s.state(p); state == view.Live || state == view.Finished && !s.at(p).drained {
			s.ask(&out, p, view.Failed, why)
		}
	}
	s.settle(&out)
	return out
}

// Aborted records that p, on the peer named host, has called Abort. That ends the job once the user
// has everything that the rank wrote before.
func (s *State) Aborted(p view.Process, code int, reason, host string) Effects {
	var out Effects
	if !s.view.Live(p) {
		return out
	}
	if code < 1 || code > maxStatus {
		code = 1
	}
	text := fmt.Sprintf("rank %d called Abort", p.Rank)
	if reason != "" {
		text += ": " + reason
	}
	s.at(p).aborted, s.at(p).host = &Result{Status: code, Message: text}, host
	s.judge(&out, p)
	return out
}

// maxMoves limits how often a rank's master is replaced by a replica that is ahead. An honest
// replica reports that it is ahead ever more rarely.
const maxMoves = 32

// Ahead handles the report that p has long been ahead of its rank's master, and requests that p
// become master. A false report is harmless: any replica that is up to date may be master.
func (s *State) Ahead(p view.Process) Effects {
	var out Effects
	if !s.begun || s.over || !s.view.Live(p) || s.lags(p) || s.at(p).exit != nil || s.at(p).aborted != nil {
		return out
	}
	c := view.Change{Process: p, To: view.Live, Since: s.view.Since[p.Rank]}
	if _, changes := c.Apply(s.view); changes && s.moves[p.Rank] < maxMoves {
		out.Propose = []view.Change{c}
	}
	return out
}

// Working returns the processes that count and have not ended unsuccessfully. Their work can be
// compared.
func (s *State) Working() (ps []view.Process) {
	for rank := range s.view.N {
		for _, p := range s.Counting(rank) {
			if x := s.at(p); x.exit == nil || x.exit.Good() {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// judge requests the final state of p if p has ended. A process that ended well finishes at once,
// since it needs nothing any more. An output leader that ended badly fails only after the user has
// its output, so that its last output is not lost. An Abort takes effect only when p is the output
// leader and the user has its output. Before the job begins, another replica that ended after Abort
// fails at once.
func (s *State) judge(out *Effects, p view.Process) {
	e, aborted := s.at(p).exit, s.at(p).aborted
	speaks, drained := s.view.IsOutputLeader(p), s.at(p).drained
	switch {
	case s.state(p) != view.Live:
	case aborted != nil:
		switch {
		case speaks && drained && !s.over:
			s.acceptAbort(out, p)
		case !speaks && !s.begun && e != nil: // otherwise the others would wait for it in mpj.Init
			s.ask(out, p, view.Failed, "called Abort before the job began")
		}
	case e == nil:
	case e.Good():
		s.ask(out, p, view.Finished, e.String())
	case !speaks || drained:
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
	for k := range s.view.R {
		q := view.Process{Rank: p.Rank, Replica: k}
		if q == p || s.view.State(q) == view.Vacant {
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

// disputedAbort reports whether a replica of a finished rank called Abort and the dispute about it
// is undecided. It is undecided if the other replicas are no majority, or if the rank has fewer
// than Quorum replicas.
func (s *State) disputedAbort(rank int) bool {
	aborted, others := 0, 0
	for k := range s.view.R {
		switch p := (view.Process{Rank: rank, Replica: k}); {
		case s.view.State(p) == view.Vacant:
		case s.at(p).aborted != nil:
			aborted++
		case s.view.Has(p):
			others++
		}
	}
	return !s.Tolerant && aborted > 0 && (others <= aborted || aborted+others < Quorum)
}

// disagreement returns the result of a job in which replicas of a rank disagree about Abort: some
// did not call it, or called it with another status.
func (s *State) disagreement(rank int) Result {
	var ends []string
	for k := range s.view.R {
		p := view.Process{Rank: rank, Replica: k}
		switch {
		case s.view.State(p) == view.Vacant:
		case s.at(p).aborted != nil:
			ends = append(ends, fmt.Sprintf("replica %d on peer %s: %s (status %d)", k, s.at(p).host, s.at(p).aborted.Message, s.at(p).aborted.Status))
		case s.view.State(p) == view.Finished:
			ends = append(ends, fmt.Sprintf("replica %d finished", k))
		}
	}
	return Result{
		Status:  StatusDiverged,
		Message: fmt.Sprintf("the replicas of rank %d have diverged: %s", rank, strings.Join(ends, "; ")),
		Hint:    divergedHint,
	}
}

// judgeOthers judges the other replicas of p's rank. One that ended earlier may have waited until
// it, or another replica, became the output leader.
func (s *State) judgeOthers(out *Effects, p view.Process) {
	for k := range s.view.R {
		if k != p.Replica {
			s.judge(out, view.Process{Rank: p.Rank, Replica: k})
		}
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

// Resume records that the job has begun before this State was made.
func (s *State) Resume() { s.begun = true }

// Begun reports whether all live processes may leave mpj.Init.
func (s *State) Begun() bool { return s.begun }

// Over reports whether there is a result.
func (s *State) Over() bool { return s.over }

// Attribute records why p fails, as the rest of a sentence, unless a reason is known already.
func (s *State) Attribute(p view.Process, why string) {
	if s.view.Contains(p) && s.at(p).why == "" {
		s.at(p).why = why
	}
}

// endedWell reports whether p has ended successfully, according to its peer.
func (s *State) endedWell(p view.Process) bool {
	return s.at(p).exit != nil && s.at(p).exit.Good()
}

// Unexplained reports whether p finishes only at its peer's request, although the peer has not
// reported a successful end of p.
func (s *State) Unexplained(p view.Process) bool {
	return s.view.Contains(p) && s.at(p).asked < view.Finished && !s.endedWell(p)
}

// Silent reports whether p has finished in the view although its peer has not reported a successful
// end.
func (s *State) Silent(p view.Process) bool {
	return s.view.State(p) == view.Finished && !s.endedWell(p)
}

// Undrained returns the output leaders that have ended or called Abort, and whose output the user
// does not have completely.
func (s *State) Undrained() (ps []view.Process) {
	for rank := range s.view.N {
		if p, ok := s.view.OutputLeader(rank); ok {
			at := s.at(p)
			if ended := s.view.State(p) == view.Finished || at.exit != nil || at.aborted != nil; ended && !at.drained {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// Committed applies a change of the view that has been agreed on.
func (s *State) Committed(c view.Change) Effects {
	var out Effects
	wasMaster := s.view.IsMaster(c.Process)
	next, changed := c.Apply(s.view)
	if !changed {
		return out
	}
	out.View = &next
	switch {
	case c.Promotes():
		s.moves[c.Process.Rank]++
	case c.Joins():
		s.joined(&out, c.Process, next)
		return out
	}
	s.explainAsides(c.Process, next)
	s.view = next
	if c.To == view.Failed {
		if at := s.at(c.Process); at.why == "" {
			at.why = "failed, say the job's peers" // the peers requested it while the submitter was disconnected
		}
		out.Notes = append(out.Notes, s.failureNotice(c.Process, wasMaster))
	}
	s.requestAgain(&out, c.Process.Rank)
	s.judgeOthers(&out, c.Process) // the output leader may have changed
	s.settle(&out)
	return out
}

// failureNotice returns the message that p has failed. It names the new master if p was the master.
func (s *State) failureNotice(p view.Process, wasMaster bool) string {
	note := fmt.Sprintf("rank %d replica %d %s", p.Rank, p.Replica, s.reason(p))
	if m, ok := s.view.Master(p.Rank); ok && wasMaster {
		note += fmt.Sprintf("; replica %d is its master now", m.Replica)
	}
	return note
}

// reason returns why p has failed, as the rest of a sentence. A process that joined its rank late
// ends by itself if the rank is done before p is up to date. That is not the program's fault.
func (s *State) reason(p view.Process) string {
	at := s.at(p)
	if at.joining && at.exit != nil && at.exit.endedByItself() {
		for k := range s.view.R {
			if s.view.State(view.Process{Rank: p.Rank, Replica: k}) == view.Finished {
				return "had yet to be brought up to date when its rank was done"
			}
		}
	}
	return at.why
}

// CutOff ends the job because no change can be agreed on any more. The majority of the view group
// is unreachable and continues without this peer, or not at all (V2).
func (s *State) CutOff() Effects {
	var out Effects
	if s.over {
		return out
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
	s.end(&out, r)
	return out
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
		if s.done(rank) {
			done++
		}
	}
	if done == s.view.N {
		s.end(out, s.Answer())
		return
	}
	s.settleInit(out)
}

// done reports whether a replica of rank has finished and the user has all its output. If the job
// has not begun, or the replica never called mpj.Init, it counts only if the program does not use
// mpj (see skips).
func (s *State) done(rank int) bool {
	for k := range s.view.R {
		p := view.Process{Rank: rank, Replica: k}
		if s.view.State(p) == view.Finished && s.at(p).drained && (s.begun && s.Called(p) || s.skips(rank)) {
			return true
		}
	}
	return false
}

// settleInit lets all processes leave mpj.Init, or ends the job if they never can.
func (s *State) settleInit(out *Effects) {
	if s.begun {
		return
	}
	waiting, gone, missing := -1, -1, false
	for _, p := range s.view.Processes() {
		switch {
		case s.done(p.Rank):
			gone = p.Rank
		case s.view.State(p) == view.Finished:
			missing = true
		case !s.view.Live(p):
		case !s.at(p).initialized:
			missing = true
		case s.majorityCalls(p.Rank):
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

func (s *State) end(out *Effects, r Result) {
	s.over = true
	out.Result = &r
}

// Uninitialized reports whether no process called mpj.Init, so that every rank did the same work
// alone.
func (s *State) Uninitialized() bool {
	for i := range s.procs {
		if s.procs[i].initialized {
			return false
		}
	}
	return true
}
