package nemesis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Ending is how a job ended, and what it had been through by then.
type Ending struct {
	Status int    // exit status of the last p2prun; -1 if who waits for it has killed it
	Said   string // by p2prun, with single blanks
	Answer error  // what is wrong with what the job has printed and written

	Exposed  []int // ranks none of whose replicas is sure to have survived
	Severed  bool  // the submitter was cut off from all peers for long
	Outvoted bool  // the majority of those who agree on views may have been lost

	Liar string // the name that p2prun gives to the lying peer; "" if no peer lies

	Resumed bool // p2prun was killed, or the peer that it had handed the job to, and the job gone on with
	Kept    bool // before that p2prun said that the job can be gone on with
	Over    bool // before that the job had ended
}

// A Verdict is what an Ending comes to.
type Verdict string

// What may be.
const (
	RightAnswer   Verdict = "right answer"
	RankLost      Verdict = "a rank lost, and said so"
	LiarNamed     Verdict = "replicas diverged, and the liar is named" // V4
	CutOff        Verdict = "submitter cut off, and said so"
	NoMajority    Verdict = "no majority, and said so"
	KilledEarly   Verdict = "submitter killed before the job could be gone on with"
	KilledTooLate Verdict = "submitter killed when the job was over"
)

// What must not be.
const (
	WrongAnswer Verdict = "wrong answer"
	WrongStatus Verdict = "wrong status"
	Hang        Verdict = "hang"
	LiveFailed  Verdict = "a live process failed" // V3
	Leftovers   Verdict = "leftovers"
)

// Wrongs are all that must not be, in the order of reports.
var Wrongs = []Verdict{WrongAnswer, WrongStatus, Hang, LiveFailed, Leftovers}

// Wrong reports whether v must not be.
func (v Verdict) Wrong() bool { return slices.Contains(Wrongs, v) }

// The exit statuses of p2prun that are not the program's own.
const (
	killed   = -1 // by a signal
	ok       = 0
	usage    = 64
	diverged = 65
	noPeer   = 69
	lost     = 70
	timeout  = 75
)

// Judge says what an ending comes to.
func (e Ending) Judge() Verdict {
	switch {
	case e.Status == killed || e.Status == timeout:
		return Hang
	case e.Status == ok && e.Answer != nil:
		return WrongAnswer
	case e.Status == ok:
		return RightAnswer
	case e.Resumed && !e.Kept && e.gone():
		return KilledEarly
	case e.Resumed && e.Over && e.gone() && e.Answer == nil:
		return KilledTooLate
	case e.Status == diverged && e.Liar != "" && strings.Contains(e.Said, e.Liar):
		return LiarNamed
	case e.Status != lost:
		return WrongStatus
	case slices.ContainsFunc(e.Exposed, e.saysLost):
		return RankLost
	case e.Severed && e.saysParted():
		return CutOff
	case e.Outvoted && strings.Contains(e.Said, noMajority):
		return NoMajority
	}
	return WrongStatus
}

// Watched reports whether what became of the job's processes says anything about V3. Where the
// majority may have been lost, the others may fail whom they do not reach; and of a job that ended
// because its submitter was cut off or killed, each peer has ended its part.
func (e Ending) Watched() bool {
	return !e.Outvoted && (e.Status == ok || !e.Severed && !e.gone())
}

// gone reports whether who wanted to go on with the job was told that there is nothing to
// go on with.
func (e Ending) gone() bool {
	why := map[int][]string{
		usage:  {"no job to go on with", "it is about to end", "no such job is kept"},
		noPeer: {"ended before the job did"},
		lost:   {"nothing of job"},
	}
	return slices.ContainsFunc(why[e.Status], func(text string) bool { return strings.Contains(e.Said, text) })
}

func (e Ending) saysLost(rank int) bool {
	return strings.Contains(e.Said, fmt.Sprintf("rank %d lost all its replicas", rank))
}

const noMajority = "cut off from the majority of the job's peers"

// saysParted reports whether a submitter that was cut off from all peers says so in one
// of the ways in which it can notice: it has heard of no majority; or of one that had
// some peers left, and not all ranks; or the job was over but for its files.
func (e Ending) saysParted() bool {
	return slices.ContainsFunc([]string{noMajority, "lost all its replicas", "could not be collected"},
		func(reason string) bool { return strings.Contains(e.Said, reason) })
}

// A Failure is that a process left the view.
type Failure struct {
	Process
	At  time.Duration // after the job began to run
	Why string        // in p2prun's words
}

// String writes it for whoever looks for the reason.
func (f Failure) String() string {
	return fmt.Sprintf("%s at %v (%s)", f.Process, f.At.Round(time.Millisecond), f.Why)
}

// Unprovoked returns those failures that nothing explains: by then nothing had been done
// to the process, or to its machine, that may fail it (V3). harmed says since when
// something had been.
func Unprovoked(failures []Failure, harmed map[Process]time.Duration) []Failure {
	var all []Failure
	for _, f := range failures {
		if since, was := harmed[f.Process]; !was || since > f.At {
			all = append(all, f)
		}
	}
	return all
}
