package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// What a job does when the replicas of a rank have not done the same.
const (
	Stop = "stop" // vote out the odd one; stop if that cannot be
	Warn = "warn" // tell the user, and go on
)

// maxWords bounds the words of each process that the submitter remembers. Honest ones
// say no more (package engine), and what one that lies says takes nothing from others.
const maxWords = 256

// A disputed message is one that some replica of its source says is another one than
// its receiver has got.
type disputed struct {
	source   int // rank
	receiver view.Process
	context  uint32
	seq      uint64
}

// A dispute is what the replicas of the source say about a message.
type dispute struct {
	disputed
	words   map[int]word // by replica; the first of each counts
	settled bool
}

// A word is what one replica says.
type word struct {
	protection.Divergence
	text string // the same for people, a sentence without its end
}

// foretold is what processes say about receivers that have yet to join, by who says it.
type foretold map[view.Process][]protection.Divergence

// diverged takes the word of process p.
func (e *execution) diverged(l *link, p view.Process, m *jobpb.Diverged) *Result {
	v := e.watch.View()
	d, err := m.Divergence(v)
	switch {
	case v.State(d.Receiver) == view.Vacant: // it has joined in a view that is yet to come
		if len(e.foretold[p]) < maxWords {
			e.foretold[p] = append(e.foretold[p], d)
		}
		return nil
	case err != nil:
		return e.breach(l, err)
	}
	return e.apply(e.watch.Diverged(p, d, e.evidence(p, d)))
}

// hearForetold takes the words that came before their receiver, which has joined now.
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

// evidence says in words what process p says, with the peers that are concerned.
func (e *execution) evidence(p view.Process, d protection.Divergence) string {
	return fmt.Sprintf("rank %d replica %d on peer %s has produced another message than rank %d replica %d on peer %s has got: %v",
		p.Rank, p.Replica, e.peerOf(p), d.Receiver.Rank, d.Receiver.Replica, e.peerOf(d.Receiver), d)
}

// Diverged says what p has produced as a message that replicas of its rank have not
// produced alike; text is the same in words, about the message that p has
// produced.
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

// arbitrate decides the disputes that can be decided, each time anew when one has
// voted somebody out.
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

// open reports whether a replica that still counts says that the receiver has got
// something else, and nothing has followed from that yet.
func (w *watch) open(d *dispute) bool {
	return !w.tolerant && !d.settled && slices.ContainsFunc(w.counting(d.source), func(p view.Process) bool {
		said, ok := d.words[p.Replica]
		return ok && said.Differs()
	})
}

// counting returns the replicas of a rank that have not failed, nor are about to, and
// do not lag.
func (w *watch) counting(rank int) (ps []view.Process) {
	for k := range w.view.R {
		if p := (view.Process{Rank: rank, Replica: k}); w.has(p) && !w.lags(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// quorum is how many replicas must count for one to be voted out. Of two that differ
// nobody knows which is right.
const quorum = 3

// decide draws the conclusion from what the replicas have said, if it does not
// depend on those that have yet to. Who has produced something else than most have,
// and than the receivers have got, is voted out. When the receivers have got what
// most have not produced, they have computed with it, and nobody's going can undo
// that; only a receiver that all replicas of the source contradict can go itself.
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

// harmless reports whether an undecided dispute leaves the answer right: the source has at least quorum
// replicas, and the receivers have got the message that most of these produced.
func (w *watch) harmless(d *dispute) bool {
	counting := w.counting(d.source)
	most, ok := majority(d.produced(counting), len(counting))
	return ok && len(counting) >= quorum && d.delivered(counting, most)
}

// majority returns what more than half of so many have produced.
func majority(said map[uint64]int, counting int) (produced uint64, ok bool) {
	for produced, n := range said {
		if 2*n > counting {
			return produced, true
		}
	}
	return 0, false
}

// delivered reports whether most have produced the same and say that the receiver has
// got it. One that says so alone may have sent it something else.
func (d *dispute) delivered(counting []view.Process, most uint64) bool {
	agree := 0
	for _, p := range counting {
		if said, ok := d.words[p.Replica]; ok && said.Produced == most && !said.Differs() {
			agree++
		}
	}
	return 2*agree > len(counting)
}

// voteOut fails those that have produced something else than most have.
func (w *watch) voteOut(s *step, d *dispute, counting []view.Process, most uint64) {
	d.settled = true
	for _, p := range counting {
		if said, ok := d.words[p.Replica]; ok && said.Produced != most {
			w.outvote(s, p, "was voted out: most replicas of its rank have produced another message")
		}
	}
}

const divergedHint = "a program must not depend on the clock, random numbers, the environment or the order of maps (docs/mpj.md); if this one does not, a peer changes data: try -r 3"

// irreconcilable is the result of a job that cannot go on because of d.
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

// answer is the result of a job all of whose ranks are done: success, unless a dispute is undecided. Replicas
// may still report a dispute after the job is done, while its answer is yet to be confirmed.
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
