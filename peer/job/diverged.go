package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// Values of Request.OnDivergence: what a job does when the replicas of a rank diverge.
const (
	Stop = "stop" // vote out a deviating replica; stop the job if no majority decides
	Warn = "warn" // tell the user and continue
)

// maxWords limits the divergence reports of each process that the submitter stores. Honest
// processes send no more (package engine), and reports of a liar do not use up the limit of others.
const maxWords = 256

// A disputed message is one that, according to a replica of its source, differs from the message
// that the receiver has got.
type disputed struct {
	source   int // rank
	receiver view.Process
	context  uint32
	seq      uint64
}

// A dispute holds the reports of the source's replicas about a message.
type dispute struct {
	disputed
	words   map[int]word // by replica; only the first report of each counts
	settled bool
}

// A word is the report of one replica.
type word struct {
	protection.Divergence
	text string // the report as a sentence for the user, without its end
}

// foretold holds reports about receivers that have yet to join, by the reporting process.
type foretold map[view.Process][]protection.Divergence

// diverged handles a divergence report of process p.
func (e *execution) diverged(l *link, p view.Process, m *jobpb.Diverged) *Result {
	v := e.watch.View()
	d, err := m.Divergence(v)
	switch {
	case v.State(d.Receiver) == view.Vacant: // the receiver joins in a later view
		if len(e.foretold[p]) < maxWords {
			e.foretold[p] = append(e.foretold[p], d)
		}
		return nil
	case err != nil:
		return e.breach(l, err)
	}
	return e.apply(e.watch.Diverged(p, d, e.evidence(p, d)))
}

// hearForetold handles the reports that arrived before their receiver joined.
func (e *execution) hearForetold(receiver view.Process) (r *Result) {
	v := e.watch.View()
	for _, p := range v.Processes() {
		for _, d := range e.foretold[p] {
			if d.Receiver != receiver || d.Valid(p, v) != nil {
				continue
			}
			r = cmp.Or(r, e.apply(e.watch.Diverged(p, d, e.evidence(p, d))))
		}
	}
	return r
}

// evidence describes a report of process p as a sentence, with the peers concerned.
func (e *execution) evidence(p view.Process, d protection.Divergence) string {
	return fmt.Sprintf("rank %d replica %d on peer %s has produced another message than rank %d replica %d on peer %s has got: %v",
		p.Rank, p.Replica, e.peerOf(p), d.Receiver.Rank, d.Receiver.Replica, e.peerOf(d.Receiver), d)
}

// Diverged handles the report of p about a message that not all replicas of its rank have produced
// alike. text is the report as a sentence.
func (w *watch) Diverged(p view.Process, d protection.Divergence, text string) step {
	var s step
	if !w.has(p) {
		return s
	}
	if w.at(p).words++; w.at(p).words > maxWords {
		return s
	}
	about := w.about(disputed{p.Rank, d.Receiver, d.Context, d.Seq})
	if _, again := about.words[p.Replica]; again {
		return s
	}
	about.words[p.Replica] = word{d, text}
	about.settled = false
	if d.Differs() {
		s.Notes = append(s.Notes, text)
	}
	w.settle(&s)
	return s
}

// about returns the dispute about a message.
func (w *watch) about(m disputed) *dispute {
	for _, d := range w.disputes {
		if d.disputed == m {
			return d
		}
	}
	d := &dispute{disputed: m, words: make(map[int]word)}
	w.disputes = append(w.disputes, d)
	return d
}

// arbitrate decides all disputes that can be decided. It starts over after each vote, since a
// voted-out replica no longer counts.
func (w *watch) arbitrate(s *step) {
	for before := -1; before != len(s.Propose); {
		before = len(s.Propose)
		for _, d := range w.disputes {
			if !w.over && w.open(d) {
				w.decide(s, d)
			}
		}
	}
}

// open reports whether a dispute is undecided: a replica that counts reports that the receiver has
// got another message than it has produced.
func (w *watch) open(d *dispute) bool {
	return !w.tolerant && !d.settled && slices.ContainsFunc(w.counting(d.source), func(p view.Process) bool {
		said, ok := d.words[p.Replica]
		return ok && said.Differs()
	})
}

// counting returns the replicas of a rank that have not failed, are not about to, and do not lag.
func (w *watch) counting(rank int) (ps []view.Process) {
	for k := range w.view.R {
		if p := (view.Process{Rank: rank, Replica: k}); w.has(p) && !w.lags(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// quorum is the least number of counting replicas with which one can be voted out. If two differ,
// neither is known to be right.
const quorum = 3

// decide decides a dispute if the reports still missing cannot change the outcome. If most replicas
// have produced the message that the receivers have got, decide votes out the others. Otherwise the
// receivers have computed with a message that most replicas did not produce, and voting out its
// producers cannot undo that. If all replicas of the source contradict the receiver, and its rank has
// at least quorum counting replicas, decide votes out the receiver. In all other cases the job ends,
// as it does at once if fewer than quorum replicas of the source count.
func (w *watch) decide(s *step, d *dispute) {
	counting := w.counting(d.source)
	said := d.produced(counting)
	all := 0
	for _, n := range said {
		all += n
	}
	most, ok := majority(said, len(counting))
	switch {
	case len(counting) < quorum:
		w.end(s, w.irreconcilable(d))
	case ok && d.delivered(counting, most):
		w.voteOut(s, d, counting, most)
	case all < len(counting):
	case ok && said[most] == all && len(w.counting(d.receiver.Rank)) >= quorum:
		d.settled = true
		w.outvote(s, d.receiver, fmt.Sprintf("was voted out: it reports a received message that no replica of rank %d produced", d.source))
	default:
		w.end(s, w.irreconcilable(d))
	}
}

// produced returns how many of the given replicas have produced each message.
func (d *dispute) produced(counting []view.Process) map[uint64]int {
	said := make(map[uint64]int)
	for _, p := range counting {
		if x, ok := d.words[p.Replica]; ok {
			said[x.Produced]++
		}
	}
	return said
}

// harmless reports whether an undecided dispute leaves the answer right: the source has at least
// quorum replicas, and the receivers have got the message that most of these produced.
func (w *watch) harmless(d *dispute) bool {
	counting := w.counting(d.source)
	most, ok := majority(d.produced(counting), len(counting))
	return ok && len(counting) >= quorum && d.delivered(counting, most)
}

// majority returns the message that more than half of the counting replicas have produced.
func majority(said map[uint64]int, counting int) (produced uint64, ok bool) {
	for produced, n := range said {
		if 2*n > counting {
			return produced, true
		}
	}
	return 0, false
}

// delivered reports whether most replicas have produced the message most and report that the
// receiver has got it. A single replica that reports this may have sent the receiver something
// else.
func (d *dispute) delivered(counting []view.Process, most uint64) bool {
	agree := 0
	for _, p := range counting {
		if said, ok := d.words[p.Replica]; ok && said.Produced == most && !said.Differs() {
			agree++
		}
	}
	return 2*agree > len(counting)
}

// voteOut fails the replicas that have produced another message than most.
func (w *watch) voteOut(s *step, d *dispute, counting []view.Process, most uint64) {
	d.settled = true
	for _, p := range counting {
		if said, ok := d.words[p.Replica]; ok && said.Produced != most {
			w.outvote(s, p, "was voted out: most replicas of its rank have produced another message")
		}
	}
}

const divergedHint = "a program must not depend on the clock, random numbers, the environment or the order of maps (docs/mpj.md); if this one does not, a peer changes data: try -r 3"

// irreconcilable returns the result of a job that d ends.
func (w *watch) irreconcilable(d *dispute) Result {
	r := Result{
		Status: StatusDiverged,
		Hint:   divergedHint,
	}
	for _, p := range w.counting(d.source) {
		if said, ok := d.words[p.Replica]; ok && said.Differs() {
			r.Message = fmt.Sprintf("the replicas of rank %d have diverged: %s", d.source, said.text)
			break
		}
	}
	return r
}

// answer returns the result of a job whose ranks are all done: success, unless a dispute is
// undecided. Replicas may still report a dispute while the answer has yet to be confirmed.
func (w *watch) answer() Result {
	for _, d := range w.disputes {
		if w.open(d) && !w.harmless(d) {
			return w.irreconcilable(d)
		}
	}
	for rank := range w.view.N {
		if w.disputedAbort(rank) {
			return w.disagreement(rank)
		}
	}
	return Result{Status: StatusOK}
}
