package job

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// A watch follows the processes of a running job and decides: what becomes of them in
// the view, when all may leave mpj.Init, and the result. It starts no goroutine, reads
// no clock and opens nothing; its owner hands it one event at a time and carries
// out the step. The view is changed by Committed only: the watch asks for changes, and
// goes on when they have been agreed on (V1). There is one Result. The view follows
// what happens after it too, since output files may still be collected.
type watch struct {
	view  view.View
	procs []watched
	r     int // replicas of each rank at first, and as many as possible always
	begun bool
	over  bool

	expected []int  // ranks that a process may join, if that is agreed on
	moves    []int  // by rank: of mastership, to one that was ahead
	lapsed   []bool // by rank: see Lapsed
	disputes []*dispute
	tolerant bool // of divergence: it is told and nothing else

	peerOf func(view.Process) string // names the peer of a process for the user; nil: it is not named
}

// watched is what is known of one process.
type watched struct {
	initialized bool
	unkept      bool // it can bring no new replica up to date
	leaving     bool // its owner takes the machine back, see Leaves
	joining     bool // it has joined the job late, and has yet to say that it does what its rank does
	exit        *exit
	aborted     *Result // of the job, since it called Abort
	host        string  // name of its peer, once it has called Abort
	drained     bool    // the user has all its output
	words       int     // of divergence, see Diverged

	setAside viewgroup.Change // the change that was last requested
	upToDate viewgroup.Change // the change by which it counts again, according to its last statement

	asked view.State // what it is to become, if that is agreed on
	why   string     // it is, or will be, not live, as the rest of a sentence
}

// A step is what follows from an event.
type step struct {
	Propose []viewgroup.Change // to be agreed on
	View    *view.View         // new: to be told to every peer
	By      []string           // IDs of the peers at whose request View has changed
	Begin   bool               // every live process has called mpj.Init: let them go on
	Notes   []string           // what happened, one sentence each, for the user
	Joined  *view.Process      // it is in View, and may leave mpj.Init
	Healed  bool               // a process that has joined counts as much as any other now
	Result  *Result            // the job is over

	Outvoted []view.Process // processes that deviated from most replicas of their rank
}

// newWatch returns the watch of a job whose processes have all been started.
func newWatch(n, r int) *watch {
	return &watch{view: view.New(n, r), r: r, procs: make([]watched, n*r), moves: make([]int, n), lapsed: make([]bool, n)}
}

// View returns the current view: the latest that has been agreed on.
func (w *watch) View() view.View { return w.view }

func (w *watch) at(p view.Process) *watched { return &w.procs[p.Rank*w.view.R+p.Replica] }

// state returns what the view says of p, or will say when all that was asked for has
// been agreed on. Asking is in vain only if the whole job ends.
func (w *watch) state(p view.Process) view.State { return max(w.view.State(p), w.at(p).asked) }

// has reports whether p counts, and will when all that was asked for has been agreed on.
func (w *watch) has(p view.Process) bool {
	s := w.state(p)
	return s == view.Live || s == view.Finished
}

// Asked returns what was asked for of processes that end, and has yet to be agreed on.
func (w *watch) Asked() (changes []viewgroup.Change) {
	for _, p := range w.view.Processes() {
		if to := w.at(p).asked; to > w.view.State(p) {
			changes = append(changes, viewgroup.Change{Process: p, To: to})
		}
	}
	return changes
}

// Initialized says that p has called mpj.Init.
func (w *watch) Initialized(p view.Process) step {
	var s step
	if !w.view.Live(p) {
		return s
	}
	w.at(p).initialized = true
	w.settle(&s)
	return s
}

// Exited handles the report of p's peer that p has ended (F2). It may come after it was agreed that p has
// finished.
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

// Drained says that the user has got everything that p wrote, and p's streams are
// closed. It is said only of processes that speak, or have spoken.
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

// Lost says that the processes ps are gone with their peer; why is the rest of a
// sentence that begins with the process.
func (w *watch) Lost(ps []view.Process, why string) step {
	var s step
	for _, p := range ps {
		if !w.view.Contains(p) { // it has yet to join
			continue
		}
		// A finished process whose output is out needs its peer no more.
		if state := w.state(p); state == view.Live || state == view.Finished && !w.at(p).drained {
			w.ask(&s, p, view.Failed, why)
		}
	}
	w.settle(&s)
	return s
}

// Aborted says that p, on the peer named host, has called Abort, which ends the whole job once what its
// rank has written before is out.
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

// maxMoves bounds how often the mastership of a rank moves to one that is ahead. An
// honest replica says so ever more rarely.
const maxMoves = 32

// Ahead says that p has long been ahead of its rank's master: it is to be the master,
// if it runs. That it lies does no harm: any replica that is up to date may be master.
func (w *watch) Ahead(p view.Process) step {
	var s step
	if !w.begun || w.over || !w.view.Live(p) || w.lags(p) || w.at(p).exit != nil || w.at(p).aborted != nil {
		return s
	}
	c := viewgroup.Change{Process: p, To: view.Live, Since: w.view.Since[p.Rank]}
	if _, changes := c.Apply(w.view); changes && w.moves[p.Rank] < maxMoves {
		s.Propose = []viewgroup.Change{c}
	}
	return s
}

// working returns the processes that take part in the job, or have, and have not ended
// otherwise than well: what they have done can be compared.
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

// judge moves p, which has ended, out of the live ones: at once if it ended
// well, for it needs nothing any more. The speaker of a rank that did not is
// judged only when its output is out, so that what it wrote before it ended is
// not lost. A process that called Abort is judged only as the speaker.
func (w *watch) judge(s *step, p view.Process) {
	e, aborted := w.at(p).exit, w.at(p).aborted
	speaks, drained := w.view.Speaks(p), w.at(p).drained
	switch {
	case w.state(p) != view.Live:
	case aborted != nil:
		switch {
		case speaks && drained && !w.over:
			w.believe(s, p)
		case !speaks && !w.begun && e != nil: // the others would wait for it in mpj.Init
			w.ask(s, p, view.Failed, "called Abort before the job began")
		}
	case e == nil:
	case e.good():
		w.ask(s, p, view.Finished, e.String())
	case !speaks || drained:
		w.ask(s, p, view.Failed, w.at(p).exit.String())
	}
}

// believe ends the job as p wants, which has called Abort, unless another replica of its rank can still
// contradict it, or does: one replica alone may lie. A replica that runs continues without p and comes
// to the same call if that is what the program does. A replica that has ended well contradicts p, also
// while the job's peers have yet to agree that it has finished; see disputedAbort.
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

// disputedAbort reports whether a replica of rank, which is done, has called Abort, and those that
// have not are no majority of a quorum.
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

// disagreement is the result of a job in which some replicas of a rank have called Abort, and
// others have not, or otherwise.
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

// judgeOthers judges the other replicas of p's rank, which may have ended long ago
// and only waited for somebody else to speak or to be silent.
func (w *watch) judgeOthers(s *step, p view.Process) {
	for k := range w.view.R {
		if k != p.Replica {
			w.judge(s, view.Process{Rank: p.Rank, Replica: k})
		}
	}
}

// ask wants p to become something.
func (w *watch) ask(s *step, p view.Process, to view.State, why string) {
	if w.state(p) < to {
		w.at(p).asked, w.at(p).why = to, why
		s.Propose = append(s.Propose, viewgroup.Change{Process: p, To: to})
	}
}

// outvote fails p, which deviated from most replicas of its rank.
func (w *watch) outvote(s *step, p view.Process, why string) {
	w.ask(s, p, view.Failed, why)
	s.Outvoted = append(s.Outvoted, p)
}

// Attribute says why p is to fail, as the rest of a sentence, unless that is known already.
func (w *watch) Attribute(p view.Process, why string) {
	if w.view.Contains(p) && w.at(p).why == "" {
		w.at(p).why = why
	}
}

// endedWell reports whether p has ended successfully, according to its peer.
func (w *watch) endedWell(p view.Process) bool {
	return w.at(p).exit != nil && w.at(p).exit.good()
}

// Unexplained reports whether p is to finish at the request of its peer alone, which has not reported that p
// ended successfully.
func (w *watch) Unexplained(p view.Process) bool {
	return w.view.Contains(p) && w.at(p).asked < view.Finished && !w.endedWell(p)
}

// Silent reports whether p has finished, and its peer has not reported that it ended successfully.
func (w *watch) Silent(p view.Process) bool {
	return w.view.State(p) == view.Finished && !w.endedWell(p)
}

// Undrained returns the speakers that have ended, or called Abort, and of whose output the user lacks
// something.
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

// Committed says that a change of the view has been agreed on.
func (w *watch) Committed(c viewgroup.Change) step {
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
			at.why = "failed, say the job's peers" // who have asked for it while the submitter was away
		}
		s.Notes = append(s.Notes, w.failureNotice(c.Process, wasMaster))
	}
	w.wishAgain(&s, c.Process.Rank)
	w.judgeOthers(&s, c.Process) // it may have taken the word from one that has ended, or left it to one
	w.settle(&s)
	return s
}

// failureNotice says that p has failed, and who is the master of its rank now.
func (w *watch) failureNotice(p view.Process, wasMaster bool) string {
	note := fmt.Sprintf("rank %d replica %d %s", p.Rank, p.Replica, w.reason(p))
	if m, ok := w.view.Master(p.Rank); ok && wasMaster {
		note += fmt.Sprintf("; replica %d is its master now", m.Replica)
	}
	return note
}

// reason says why p has failed, as the rest of a sentence. A process that has joined its rank late ends
// by itself if the rank is done before p is up to date: its program is not to blame for that.
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

// CutOff says that nothing can be agreed on any more: the majority of those who agree
// is out of reach, and goes on without this peer or not at all (V2).
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

// settle draws the conclusions from what has changed.
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

// done reports whether some replica of rank has finished and the user has got all its output. If the job has
// not begun, or the replica never called mpj.Init, it counts only if the program does not use mpj (see skips).
func (w *watch) done(rank int) bool {
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		if w.view.State(p) == view.Finished && w.at(p).drained && (w.begun && w.called(p) || w.skips(rank)) {
			return true
		}
	}
	return false
}

// settleInit lets everybody leave mpj.Init, or finds out that they never will.
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

// Uninitialized reports whether the job ran without any process calling
// mpj.Init: every rank did the same work alone.
func (w *watch) Uninitialized() bool {
	for i := range w.procs {
		if w.procs[i].initialized {
			return false
		}
	}
	return true
}
