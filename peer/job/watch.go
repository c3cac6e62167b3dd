package job

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Watch follows the processes of a running job and decides: the views, when
// all may leave mpj.Init, and the result. It starts no goroutine, reads no
// clock and opens nothing; its owner hands it one event at a time and carries
// out the Step. There is one Result. The view follows what happens after it too,
// since output files may still be collected.
type Watch struct {
	view  view.View
	procs []watched
	r     int // replicas of each rank at first, and as many as possible always
	begun bool
	over  bool

	disputes []*dispute
	tolerant bool // of divergence: it is told and nothing else
}

// watched is what is known of one process.
type watched struct {
	initialized bool
	unkept      bool // it can bring no new replica up to date
	joining     bool // it has joined the job late, and has yet to say that it does what its rank does
	exit        *Exit
	aborted     *Result // of the job, since it called Abort
	drained     bool    // the user has all its output
	why         string  // it is not live, as the rest of a sentence
}

// A Step is what follows from an event.
type Step struct {
	View   *view.View    // new: to be told to every peer
	Begin  bool          // every live process has called mpj.Init: let them go on
	Notes  []string      // what happened, one sentence each, for the user
	Joined *view.Process // it is in View, and may leave mpj.Init
	Healed bool          // a process that has joined counts as much as any other now
	Result *Result       // the job is over
}

// NewWatch returns the watch of a job whose processes have all been started.
func NewWatch(n, r int) *Watch {
	return &Watch{view: view.New(n, r), r: r, procs: make([]watched, n*r)}
}

// View returns the current view.
func (w *Watch) View() view.View { return w.view }

func (w *Watch) at(p view.Process) *watched { return &w.procs[p.Rank*w.view.R+p.Replica] }

// Initialized says that p has called mpj.Init.
func (w *Watch) Initialized(p view.Process) Step {
	var s Step
	if !w.view.Live(p) {
		return s
	}
	w.at(p).initialized = true
	w.settle(&s)
	return s
}

// Exited says that p has ended, as its peer tells (F2).
func (w *Watch) Exited(p view.Process, e Exit) Step {
	var s Step
	if !w.view.Live(p) || w.at(p).exit != nil {
		return s
	}
	w.at(p).exit = &e
	w.judge(&s, p)
	w.settle(&s)
	return s
}

// Drained says that the user has got everything that p wrote, and p's streams are
// closed. It is said only of processes that speak, or have spoken.
func (w *Watch) Drained(p view.Process) Step {
	var s Step
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
func (w *Watch) Lost(ps []view.Process, why string) Step {
	var s Step
	for _, p := range ps {
		// A finished process whose output is out needs its peer no more.
		if w.view.Live(p) || w.view.State(p) == view.Finished && !w.at(p).drained {
			w.fail(&s, p, why)
		}
	}
	w.settle(&s)
	return s
}

// Aborted says that p has called Abort, which ends the whole job once what its
// rank has written before is out.
func (w *Watch) Aborted(p view.Process, code int, reason string) Step {
	var s Step
	if !w.view.Live(p) || w.over {
		return s
	}
	if code < 1 || code > maxStatus {
		code = 1
	}
	text := fmt.Sprintf("rank %d called Abort", p.Rank)
	if reason != "" {
		text += ": " + reason
	}
	w.at(p).aborted = &Result{Status: code, Message: text}
	w.judge(&s, p)
	return s
}

// judge moves p, which has ended, out of the live ones: at once if it ended
// well, for it needs nothing any more. The speaker of a rank that did not is
// judged only when its output is out, so that what it wrote before it ended is
// not lost. A process that called Abort is judged only as the speaker.
func (w *Watch) judge(s *Step, p view.Process) {
	e, aborted := w.at(p).exit, w.at(p).aborted
	speaks, drained := w.view.Speaks(p), w.at(p).drained
	switch {
	case !w.view.Live(p):
	case aborted != nil:
		if speaks && drained && !w.over {
			w.end(s, *aborted)
		}
	case e == nil:
	case e.good():
		w.at(p).why = e.String()
		w.change(s, p, view.Finished)
		w.judgeOthers(s, p) // p may have taken the word from one that has ended
	case !speaks || drained:
		w.fail(s, p, e.String())
	}
}

// judgeOthers judges the other replicas of p's rank, which may have ended long ago
// and only waited for somebody else to speak or to be silent.
func (w *Watch) judgeOthers(s *Step, p view.Process) {
	for k := range w.view.R {
		if k != p.Replica {
			w.judge(s, view.Process{Rank: p.Rank, Replica: k})
		}
	}
}

func (w *Watch) fail(s *Step, p view.Process, why string) {
	wasMaster := w.view.IsMaster(p)
	w.at(p).why = why
	w.change(s, p, view.Failed)
	note := fmt.Sprintf("rank %d replica %d %s", p.Rank, p.Replica, why)
	if m, ok := w.view.Master(p.Rank); ok && wasMaster {
		note += fmt.Sprintf("; replica %d is its master now", m.Replica)
	}
	s.Notes = append(s.Notes, note)
	w.judgeOthers(s, p)
}

func (w *Watch) change(s *Step, p view.Process, to view.State) {
	if next, changed := w.view.With(p, to); changed {
		w.view = next
		s.View = &next
	}
}

// settle draws the conclusions from what has changed.
func (w *Watch) settle(s *Step) {
	if w.arbitrate(s); w.over {
		return
	}
	done := 0
	for rank := range w.view.N {
		w.forsake(s, rank)
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

// done reports whether the user has got all that rank has to say: one replica has
// finished, and its output is out.
func (w *Watch) done(rank int) bool {
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		if w.view.State(p) == view.Finished && w.at(p).drained {
			return true
		}
	}
	return false
}

// settleInit lets everybody leave mpj.Init, or finds out that they never will.
func (w *Watch) settleInit(s *Step) {
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
		case w.at(p).initialized:
			waiting = p.Rank
		default:
			missing = true
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

func (w *Watch) end(s *Step, r Result) {
	w.over = true
	s.Result = &r
}

// Uninitialized reports whether the job ran without any process calling
// mpj.Init: every rank did the same work alone.
func (w *Watch) Uninitialized() bool {
	for i := range w.procs {
		if w.procs[i].initialized {
			return false
		}
	}
	return true
}
