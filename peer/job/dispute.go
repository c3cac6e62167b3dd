package job

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// MaxReports limits the divergence reports of each process that the submitter stores. Honest
// processes send no more (package engine), and reports of a liar do not use up the limit of others.
const MaxReports = 256

// A messageID identifies a disputed message: one that, according to a replica of its source, differs
// from the message that the receiver has received.
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

// A report compares one replica's version of the message with the version that the receiver has received.
type report struct {
	protection.Divergence
	text string // the report as a sentence for the user, without its end
}

// disputes holds the disputes of a job.
type disputes []*dispute

// about returns the dispute about a message.
func (ds *disputes) about(m messageID) *dispute {
	for _, d := range *ds {
		if d.messageID == m {
			return d
		}
	}
	d := &dispute{messageID: m, reports: make(map[int]report)}
	*ds = append(*ds, d)
	return d
}

// Quorum is the least number of counting replicas with which one can be voted out. If two differ,
// neither is known to be right.
const Quorum = 3

// open reports whether the dispute is undecided and a counting replica of the source reports that the receiver
// has received a different message from the one that the replica has produced.
func (d *dispute) open(counting []view.Process) bool {
	return !d.settled && d.evidence(counting) != ""
}

// evidence returns the first report of a counting replica that contradicts the receiver, or "" if there
// is none.
func (d *dispute) evidence(counting []view.Process) string {
	for _, p := range counting {
		if said, ok := d.reports[p.Replica]; ok && said.Differs() {
			return said.text
		}
	}
	return ""
}

// decide decides a dispute if the reports still missing cannot change the outcome. If most replicas
// have produced the message that the receivers have received, the others are odd and are voted out; why is the
// reason. Otherwise the receivers have computed with a message that most replicas did not produce, and voting out
// its producers cannot undo that. If all replicas of the source contradict the receiver, and at least Quorum
// replicas of the receiver's rank count, the receiver is odd. In all other cases the job ends: diverged is true,
// as it is at once if fewer than Quorum replicas of the source count.
func (d *dispute) decide(counting []view.Process, receivers int) (odd []view.Process, why string, diverged bool) {
	said := d.produced(counting)
	all := 0
	for _, n := range said {
		all += n
	}
	most, ok := majority(said, len(counting))
	switch {
	case len(counting) < Quorum:
		return nil, "", true
	case ok && d.delivered(counting, most):
		d.settled = true
		return d.deviating(counting, most), "was voted out: most replicas of its rank have produced a different message", false
	case all < len(counting):
		return nil, "", false
	case ok && said[most] == all && receivers >= Quorum:
		d.settled = true
		why = fmt.Sprintf("was voted out: it reports a received message that no replica of rank %d produced", d.source)
		return []view.Process{d.receiver}, why, false
	}
	return nil, "", true
}

// harmless reports whether an undecided dispute leaves the answer right: the source has at least
// Quorum replicas, and the receivers have received the message that most of these produced.
func (d *dispute) harmless(counting []view.Process) bool {
	most, ok := majority(d.produced(counting), len(counting))
	return ok && len(counting) >= Quorum && d.delivered(counting, most)
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
// receiver has received it. A single replica that reports this may have sent the receiver something
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

// deviating returns the replicas that have produced a different message than most.
func (d *dispute) deviating(counting []view.Process, most uint64) (odd []view.Process) {
	for _, p := range counting {
		if said, ok := d.reports[p.Replica]; ok && said.Produced != most {
			odd = append(odd, p)
		}
	}
	return odd
}

const divergedHint = "a program must not depend on the clock, random numbers, the environment or the order of maps (docs/mpj.md); if this one does not, a peer changes data: try -r 3"
