package job

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A watch follows the processes of a running job. It decides which changes of the view to request,
// when processes may leave mpj.Init, and the result. It starts no goroutine, reads no clock and
// opens nothing; its owner passes it one event at a time and carries out the step. Only Committed
// changes the view: the watch requests changes, and acts when they have been agreed on (V1). There
// is one Result. The view continues to change after it, since output files may still be collected.
type watch struct {
	view  view.View
	procs []watched
	r     int  // initial number of replicas per rank, which healing restores
	begun bool // all live processes may leave mpj.Init
	over  bool // there is a result

	expected []int  // ranks with a requested join that is not agreed on yet
	moves    []int  // by rank: how often a replica that was ahead became master
	lapsed   []bool // by rank: the user was told; see Lapsed
	disputes []*dispute
	tolerant bool // divergence is only reported to the user

	peerOf func(view.Process) string // names the peer of a process for the user; nil: no names
}

// watched is the state of one process.
type watched struct {
	initialized bool
	unkept      bool // cannot bring a new replica up to date any more
	leaving     bool // its owner takes the machine back; see Leaves
	joining     bool // joined late and has not caught up with its rank yet
	exit        *exit
	aborted     *Result // result of the job, if the process called Abort
	host        string  // name of its peer, if the process called Abort
	drained     bool    // the user has all its output
	words       int     // number of its divergence reports; see Diverged

	setAside view.Change // the change last requested to set it aside
	upToDate view.Change // the change by which it counts again, according to its last UpToDate report

	asked view.State // state that was requested for it
	why   string     // reason for a failure or end, as the rest of a sentence
}

// A step holds the actions that follow from an event, for the owner of a watch to carry out.
type step struct {
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

// newWatch returns the watch of a job whose processes have all been started.
func newWatch(n, r int) *watch {
	return &watch{view: view.New(n, r), r: r, procs: make([]watched, n*r), moves: make([]int, n), lapsed: make([]bool, n)}
}

// View returns the current view, the latest one agreed on.
func (w *watch) View() view.View { return w.view }

func (w *watch) at(p view.Process) *watched { return &w.procs[p.Rank*w.view.R+p.Replica] }

// state returns the state that p has once all requested changes have been agreed on. A request
// fails only if the whole job ends.
func (w *watch) state(p view.Process) view.State { return max(w.view.State(p), w.at(p).asked) }

// has reports whether p is still live or finished once all requested changes have been agreed on.
func (w *watch) has(p view.Process) bool {
	s := w.state(p)
	return s == view.Live || s == view.Finished
}

// Asked returns the requested changes of processes that end and that have yet to be agreed on.
func (w *watch) Asked() (changes []view.Change) {
	for _, p := range w.view.Processes() {
		if to := w.at(p).asked; to > w.view.State(p) {
			changes = append(changes, view.Change{Process: p, To: to})
		}
	}
	return changes
}

// Initialized records that p has called mpj.Init.
func (w *watch) Initialized(p view.Process) step {
	var s step
	if !w.view.Live(p) {
		return s
	}
	w.at(p).initialized = true
	w.settle(&s)
	return s
}

// Exited handles the report of p's peer that p has ended (F2). The report may arrive after p's
// finish has been agreed on.
func (w *watch) Exited(p view.Process, e exit) step {
	var s step
	if !w.view.Has(p) || w.at(p).exit != nil {
		return s
	}
	w.at(p).exit = &e
	w.judge(&s, p)
	w.settle(&s)
	return s
}

// Drained records that the user has all output of p, whose streams are closed. It is called only
// for processes that are, or have been, the output leader of their rank (view.Speaker).
func (w *watch) Drained(p view.Process) step {
	var s step
	if !w.view.Contains(p) {
		return s
	}
	w.at(p).drained = true
	w.judge(&s, p)
	w.settle(&s)
	return s
}

// Lost handles the loss of the processes ps together with their peer; why is the rest of a sentence
// that begins with the process.
func (w *watch) Lost(ps []view.Process, why string) step {
	var s step
	for _, p := range ps {
		if !w.view.Contains(p) { // it has yet to join
			continue
		}
		// A finished process whose output was shown does not need its peer any more.
		if state := w.state(p); state == view.Live || state == view.Finished && !w.at(p).drained {
			w.ask(&s, p, view.Failed, why)
		}
	}
	w.settle(&s)
	return s
}

// Aborted records that p, on the peer named host, has called Abort. That ends the job once the user
// has everything that the rank wrote before.
func (w *watch) Aborted(p view.Process, code int, reason, host string) step {
	var s step
	if !w.view.Live(p) {
		return s
	}
	if code < 1 || code > maxStatus {
		code = 1
	}
	text := fmt.Sprintf("rank %d called Abort", p.Rank)
	if reason != "" {
		text += ": " + reason
	}
	w.at(p).aborted, w.at(p).host = &Result{Status: code, Message: text}, host
	w.judge(&s, p)
	return s
}

// maxMoves limits how often a rank's master is replaced by a replica that is ahead. An honest
// replica reports that it is ahead ever more rarely.
const maxMoves = 32

// Ahead handles the report that p has long been ahead of its rank's master, and requests that p
// become master. A false report is harmless: any replica that is up to date may be master.
func (w *watch) Ahead(p view.Process) step {
	var s step
	if !w.begun || w.over || !w.view.Live(p) || w.lags(p) || w.at(p).exit != nil || w.at(p).aborted != nil {
		return s
	}
	c := view.Change{Process: p, To: view.Live, Since: w.view.Since[p.Rank]}
	if _, changes := c.Apply(w.view); changes && w.moves[p.Rank] < maxMoves {
		s.Propose = []view.Change{c}
	}
	return s
}

// working returns the processes that count and have not ended unsuccessfully. Their work can be
// compared.
func (w *watch) working() (ps []view.Process) {
	for rank := range w.view.N {
		for _, p := range w.counting(rank) {
			if x := w.at(p); x.exit == nil || x.exit.good() {
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
func (w *watch) judge(s *step, p view.Process) {
	e, aborted := w.at(p).exit, w.at(p).aborted
	speaks, drained := w.view.Speaks(p), w.at(p).drained
	switch {
	case w.state(p) != view.Live:
	case aborted != nil:
		switch {
		case speaks && drained && !w.over:
			w.believe(s, p)
		case !speaks && !w.begun && e != nil: // otherwise the others would wait for it in mpj.Init
			w.ask(s, p, view.Failed, "called Abort before the job began")
		}
	case e == nil:
	case e.good():
		w.ask(s, p, view.Finished, e.String())
	case !speaks || drained:
		w.ask(s, p, view.Failed, w.at(p).exit.String())
	}
}

// believe ends the job with the status that p passed to Abort, unless another replica of its rank
// contradicts p or still may: a single replica may lie. If a replica that counts has not called
// Abort, believe votes p out. If a replica has called Abort with another status, the job ends with
// that disagreement, unless w.tolerant is set. A running replica continues without p and makes the
// same call if the program does. A replica that has ended well contradicts p even before the view
// group has agreed on its end; see disputedAbort.
func (w *watch) believe(s *step, p view.Process) {
	verdict := w.at(p).aborted
	for k := range w.view.R {
		q := view.Process{Rank: p.Rank, Replica: k}
		if q == p || w.view.State(q) == view.Vacant {
			continue
		}
		switch other := w.at(q); {
		case w.has(q) && !w.lags(q) && (other.exit == nil || other.exit.good()) && other.aborted == nil:
			w.outvote(s, p, "called Abort, and another replica of its rank did not")
			return
		case other.aborted != nil && other.aborted.Status != verdict.Status && !w.tolerant:
			w.end(s, w.disagreement(p.Rank))
			return
		}
	}
	w.end(s, *verdict)
}

// disputedAbort reports whether a replica of a finished rank called Abort and the dispute about it
// is undecided. It is undecided if the other replicas are no majority, or if the rank has fewer
// than quorum replicas.
func (w *watch) disputedAbort(rank int) bool {
	aborted, others := 0, 0
	for k := range w.view.R {
		switch p := (view.Process{Rank: rank, Replica: k}); {
		case w.view.State(p) == view.Vacant:
		case w.at(p).aborted != nil:
			aborted++
		case w.view.Has(p):
			others++
		}
	}
	return !w.tolerant && aborted > 0 && (others <= aborted || aborted+others < quorum)
}

// disagreement returns the result of a job in which replicas of a rank disagree about Abort: some
// did not call it, or called it with another status.
func (w *watch) disagreement(rank int) Result {
	var ends []string
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		switch {
		case w.view.State(p) == view.Vacant:
		case w.at(p).aborted != nil:
			ends = append(ends, fmt.Sprintf("replica %d on peer %s: %s (status %d)", k, w.at(p).host, w.at(p).aborted.Message, w.at(p).aborted.Status))
		case w.view.State(p) == view.Finished:
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
func (w *watch) judgeOthers(s *step, p view.Process) {
	for k := range w.view.R {
		if k != p.Replica {
			w.judge(s, view.Process{Rank: p.Rank, Replica: k})
		}
	}
}

// ask requests that p change to the given state.
func (w *watch) ask(s *step, p view.Process, to view.State, why string) {
	if w.state(p) < to {
		w.at(p).asked, w.at(p).why = to, why
		s.Propose = append(s.Propose, view.Change{Process: p, To: to})
	}
}

// outvote requests that p fail, because it deviated from most replicas of its rank.
func (w *watch) outvote(s *step, p view.Process, why string) {
	w.ask(s, p, view.Failed, why)
	s.Outvoted = append(s.Outvoted, p)
}

// Attribute records why p fails, as the rest of a sentence, unless a reason is known already.
func (w *watch) Attribute(p view.Process, why string) {
	if w.view.Contains(p) && w.at(p).why == "" {
		w.at(p).why = why
	}
}

// endedWell reports whether p has ended successfully, according to its peer.
func (w *watch) endedWell(p view.Process) bool {
	return w.at(p).exit != nil && w.at(p).exit.good()
}

// Unexplained reports whether p finishes only at its peer's request, although the peer has not
// reported a successful end of p.
func (w *watch) Unexplained(p view.Process) bool {
	return w.view.Contains(p) && w.at(p).asked < view.Finished && !w.endedWell(p)
}

// Silent reports whether p has finished in the view although its peer has not reported a successful
// end.
func (w *watch) Silent(p view.Process) bool {
	return w.view.State(p) == view.Finished && !w.endedWell(p)
}

// Undrained returns the output leaders that have ended or called Abort, and whose output the user
// does not have completely.
func (w *watch) Undrained() (ps []view.Process) {
	for rank := range w.view.N {
		if p, ok := w.view.Speaker(rank); ok {
			at := w.at(p)
			if ended := w.view.State(p) == view.Finished || at.exit != nil || at.aborted != nil; ended && !at.drained {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// Committed applies a change of the view that has been agreed on.
func (w *watch) Committed(c view.Change) step {
	var s step
	wasMaster := w.view.IsMaster(c.Process)
	next, changed := c.Apply(w.view)
	if !changed {
		return s
	}
	s.View = &next
	switch {
	case c.Promotes():
		w.moves[c.Process.Rank]++
	case c.Joins():
		w.joined(&s, c.Process, next)
		return s
	}
	w.explainAsides(c.Process, next)
	w.view = next
	if c.To == view.Failed {
		if at := w.at(c.Process); at.why == "" {
			at.why = "failed, say the job's peers" // the peers requested it while the submitter was disconnected
		}
		s.Notes = append(s.Notes, w.failureNotice(c.Process, wasMaster))
	}
	w.wishAgain(&s, c.Process.Rank)
	w.judgeOthers(&s, c.Process) // the output leader may have changed
	w.settle(&s)
	return s
}

// failureNotice returns the message that p has failed. It names the new master if p was the master.
func (w *watch) failureNotice(p view.Process, wasMaster bool) string {
	note := fmt.Sprintf("rank %d replica %d %s", p.Rank, p.Replica, w.reason(p))
	if m, ok := w.view.Master(p.Rank); ok && wasMaster {
		note += fmt.Sprintf("; replica %d is its master now", m.Replica)
	}
	return note
}

// reason returns why p has failed, as the rest of a sentence. A process that joined its rank late
// ends by itself if the rank is done before p is up to date. That is not the program's fault.
func (w *watch) reason(p view.Process) string {
	at := w.at(p)
	if at.joining && at.exit != nil && at.exit.byItself() {
		for k := range w.view.R {
			if w.view.State(view.Process{Rank: p.Rank, Replica: k}) == view.Finished {
				return "had yet to be brought up to date when its rank was done"
			}
		}
	}
	return at.why
}

// CutOff ends the job because no change can be agreed on any more. The majority of the view group
// is unreachable and continues without this peer, or not at all (V2).
func (w *watch) CutOff() step {
	var s step
	if w.over {
		return s
	}
	r := Result{
		Status:  StatusLost,
		Message: "cut off from the majority of the job's peers, without which nothing is certain",
		Hint:    "start it again; with more peers than two, the job survives more of them lost at a time",
	}
	for _, c := range w.Asked() {
		if p := c.Process; c.To == view.Failed {
			r.Message += fmt.Sprintf("; rank %d replica %d %s", p.Rank, p.Replica, w.at(p).why)
		}
	}
	w.end(&s, r)
	return s
}

// settle draws the conclusions from the current state: disputes, lost and finished ranks, the job's
// result, and the return of mpj.Init.
func (w *watch) settle(s *step) {
	if w.arbitrate(s); w.over {
		return
	}
	done := 0
	for rank := range w.view.N {
		w.forsake(s, rank)
		w.dismiss(s, rank)
		if w.settleSkipped(s, rank); w.over {
			return
		}
		if _, ok := w.view.Speaker(rank); !ok {
			w.end(s, w.lost(rank))
			return
		}
		if w.done(rank) {
			done++
		}
	}
	if done == w.view.N {
		w.end(s, w.answer())
		return
	}
	w.settleInit(s)
}

// done reports whether a replica of rank has finished and the user has all its output. If the job
// has not begun, or the replica never called mpj.Init, it counts only if the program does not use
// mpj (see skips).
func (w *watch) done(rank int) bool {
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		if w.view.State(p) == view.Finished && w.at(p).drained && (w.begun && w.called(p) || w.skips(rank)) {
			return true
		}
	}
	return false
}

// settleInit lets all processes leave mpj.Init, or ends the job if they never can.
func (w *watch) settleInit(s *step) {
	if w.begun {
		return
	}
	waiting, gone, missing := -1, -1, false
	for _, p := range w.view.Processes() {
		switch {
		case w.done(p.Rank):
			gone = p.Rank
		case w.view.State(p) == view.Finished:
			missing = true
		case !w.view.Live(p):
		case !w.at(p).initialized:
			missing = true
		case w.mostCall(p.Rank):
			waiting = p.Rank
		}
	}
	switch {
	case waiting < 0:
	case gone >= 0:
		w.end(s, Result{
			Status:  StatusLost,
			Message: fmt.Sprintf("rank %d ended without calling mpj.Init, while rank %d waits in it", gone, waiting),
		})
	case !missing:
		w.begun = true
		s.Begin = true
	}
}

func (w *watch) end(s *step, r Result) {
	w.over = true
	s.Result = &r
}

// Uninitialized reports whether no process called mpj.Init, so that every rank did the same work
// alone.
func (w *watch) Uninitialized() bool {
	for i := range w.procs {
		if w.procs[i].initialized {
			return false
		}
	}
	return true
}
