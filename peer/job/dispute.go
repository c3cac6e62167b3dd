package job

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// MaxReports limits the divergence reports of each process that the submitter stores. Honest
// processes send no more (package engine), and reports of a liar do not use up the limit of others.
const MaxReports = 256

// A disputed message is one that, according to a replica of its source, differs from the message
// that the receiver has got.
type messageID struct {
	source   int // rank
	receiver view.Process
	context  uint32
	seq      uint64
}

// A dispute holds the reports of the source's replicas about a message.
type dispute struct {
	messageID
	reports map[int]report // by replica; only the first report of each counts
	settled bool
}

// A report is the report of one replica.
type report struct {
	protection.Divergence
	text string // the report as a sentence for the user, without its end
}

// Diverged handles the report of p about a message that not all replicas of its rank have produced
// alike. text is the report as a sentence.
func (s *State) Diverged(p view.Process, d protection.Divergence, text string) Effects {
	var out Effects
	if !s.has(p) {
		return out
	}
	if s.at(p).reports++; s.at(p).reports > MaxReports {
		return out
	}
	about := s.about(messageID{p.Rank, d.Receiver, d.Context, d.Seq})
	if _, again := about.reports[p.Replica]; again {
		return out
	}
	about.reports[p.Replica] = report{d, text}
	about.settled = false
	if d.Differs() {
		out.Notes = append(out.Notes, text)
	}
	s.settle(&out)
	return out
}

// about returns the dispute about a message.
func (s *State) about(m messageID) *dispute {
	for _, d := range s.disputes {
		if d.messageID == m {
			return d
		}
	}
	d := &dispute{messageID: m, reports: make(map[int]report)}
	s.disputes = append(s.disputes, d)
	return d
}

// arbitrate decides all disputes that can be decided. It starts over after each vote, since a
// voted-out replica no longer counts.
func (s *State) arbitrate(out *Effects) {
	for before := -1; before != len(out.Propose); {
		before = len(out.Propose)
		for _, d := range s.disputes {
			if !s.over && s.open(d) {
				s.decide(out, d)
			}
		}
	}
}

// open reports whether a dispute is undecided: a counting replica reports that the receiver
// received a message that differs from the one it produced.
func (s *State) open(d *dispute) bool {
	return !s.Tolerant && !d.settled && slices.ContainsFunc(s.Counting(d.source), func(p view.Process) bool {
		said, ok := d.reports[p.Replica]
		return ok && said.Differs()
	})
}

// Counting returns the replicas of a rank that have not failed, are not about to, and do not lag.
func (s *State) Counting(rank int) (ps []view.Process) {
	for k := range s.view.R {
		if p := (view.Process{Rank: rank, Replica: k}); s.has(p) && !s.lags(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// Quorum is the least number of counting replicas with which one can be voted out. If two differ,
// neither is known to be right.
const Quorum = 3

// decide decides a dispute if the reports still missing cannot change the outcome. If most replicas
// have produced the message that the receivers have got, decide votes out the others. Otherwise the
// receivers have computed with a message that most replicas did not produce, and voting out its
// producers cannot undo that. If all replicas of the source contradict the receiver, and its rank has
// at least Quorum counting replicas, decide votes out the receiver. In all other cases the job ends,
// as it does at once if fewer than Quorum replicas of the source count.
func (s *State) decide(out *Effects, d *dispute) {
	counting := s.Counting(d.source)
	said := d.produced(counting)
	all := 0
	for _, n := range said {
		all += n
	}
	most, ok := majority(said, len(counting))
	switch {
	case len(counting) < Quorum:
		s.end(out, s.irreconcilable(d))
	case ok && d.delivered(counting, most):
		s.voteOut(out, d, counting, most)
	case all < len(counting):
	case ok && said[most] == all && len(s.Counting(d.receiver.Rank)) >= Quorum:
		d.settled = true
		s.outvote(out, d.receiver, fmt.Sprintf("was voted out: it reports a received message that no replica of rank %d produced", d.source))
	default:
		s.end(out, s.irreconcilable(d))
	}
}

// produced returns how many of the given replicas have produced each message.
func (d *dispute) produced(counting []view.Process) map[uint64]int {
	said := make(map[uint64]int)
	for _, p := range counting {
		if x, ok := d.reports[p.Replica]; ok {
			said[x.Produced]++
		}
	}
	return said
}

// harmless reports whether an undecided dispute leaves the answer right: the source has at least
// Quorum replicas, and the receivers have got the message that most of these produced.
func (s *State) harmless(d *dispute) bool {
	counting := s.Counting(d.source)
	most, ok := majority(d.produced(counting), len(counting))
	return ok && len(counting) >= Quorum && d.delivered(counting, most)
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
		if said, ok := d.reports[p.Replica]; ok && said.Produced == most && !said.Differs() {
			agree++
		}
	}
	return 2*agree > len(counting)
}

// voteOut fails the replicas that have produced another message than most.
func (s *State) voteOut(out *Effects, d *dispute, counting []view.Process, most uint64) {
	d.settled = true
	for _, p := range counting {
		if said, ok := d.reports[p.Replica]; ok && said.Produced != most {
			s.outvote(out, p, "was voted out: most replicas of its rank have produced another message")
		}
	}
}

const divergedHint = "a program must not depend on the clock, random numbers, the environment or the order of maps (docs/mpj.md); if this one does not, a peer changes data: try -r 3"

// irreconcilable returns the result of a job that d ends.
func (s *State) irreconcilable(d *dispute) Result {
	r := Result{
		Status: StatusDiverged,
		Hint:   divergedHint,
	}
	for _, p := range s.Counting(d.source) {
		if said, ok := d.reports[p.Replica]; ok && said.Differs() {
			r.Message = fmt.Sprintf("the replicas of rank %d have diverged: %s", d.source, said.text)
			break
		}
	}
	return r
}

// Answer returns the result of a job whose ranks are all done: success, unless a dispute is
// undecided. Replicas may still report a dispute before the answer is confirmed.
func (s *State) Answer() Result {
	for _, d := range s.disputes {
		if s.open(d) && !s.harmless(d) {
			return s.irreconcilable(d)
		}
	}
	for rank := range s.view.N {
		if s.disputedAbort(rank) {
			return s.disagreement(rank)
		}
	}
	return Result{Status: StatusOK}
}
