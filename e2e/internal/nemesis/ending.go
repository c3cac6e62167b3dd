package nemesis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Ending describes how a job ended, and which faults preceded that.
type Ending struct {
	Status int    // exit status of the last p2prun; -1 if the test killed it after a timeout
	Said   string // messages of p2prun, with single blanks
	Answer error  // error in what the job has printed and written

	Exposed  []int // ranks whose replicas may all have been lost
	Severed  bool  // the submitter was cut off from all peers for a long time
	Outvoted bool  // the majority of the voters on views may have been lost

	Liar string // the name that p2prun uses for the lying peer, or empty if no peer lies

	Resumed bool // p2prun or the peer that held its job was killed, and the job resumed
	Kept    bool // before that, p2prun reported that the job can be resumed
	Over    bool // before that, the job had ended
}

// A Verdict is the judgement of an Ending.
type Verdict string

// Allowed verdicts.
const (
	RightAnswer   Verdict = "right answer"
	RankLost      Verdict = "a rank lost, and reported"
	LiarNamed     Verdict = "replicas diverged, and the liar is named" // V4
	CutOff        Verdict = "submitter cut off, and reported"
	NoMajority    Verdict = "no majority, and reported"
	KilledEarly   Verdict = "submitter killed before the job could be resumed"
	KilledTooLate Verdict = "submitter killed when the job was over"
)

// Failures of the system.
const (
	WrongAnswer Verdict = "wrong answer"
	WrongStatus Verdict = "wrong status"
	Hang        Verdict = "hang"
	LiveFailed  Verdict = "a live process failed" // V3
	Leftovers   Verdict = "leftovers"
)

// Wrongs are all verdicts that are failures of the system, in the order of reports.
var Wrongs = []Verdict{WrongAnswer, WrongStatus, Hang, LiveFailed, Leftovers}

// Wrong reports whether v is a failure of the system.
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

// Judge returns the verdict on an ending.
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
	case e.Severed && e.saysCutOff():
		return CutOff
	case e.Outvoted && strings.Contains(e.Said, noMajority):
		return NoMajority
	}
	return WrongStatus
}

// Watched reports whether the failures of the job's processes are evidence about V3. Where the majority
// may have been lost, the other peers may fail processes that they cannot reach. When a job ended
// because its submitter was cut off or killed, each peer has ended its own processes.
func (e Ending) Watched() bool {
	return !e.Outvoted && (e.Status == ok || !e.Severed && !e.gone())
}

// gone reports whether an attempt to resume the job failed because there was nothing to resume.
func (e Ending) gone() bool {
	why := map[int][]string{
		usage:  {"no resumable job", "the job is about to end", "no such job is kept"},
		noPeer: {"ended before the job did"},
		lost:   {"nothing of job"},
	}
	return slices.ContainsFunc(why[e.Status], func(text string) bool { return strings.Contains(e.Said, text) })
}

func (e Ending) saysLost(rank int) bool {
	return strings.Contains(e.Said, fmt.Sprintf("rank %d lost all its replicas", rank))
}

const noMajority = "cut off from the majority of the job's peers"

// saysCutOff reports whether p2prun's messages show that the submitter was cut off from all peers. p2prun can
// notice that in one of three ways: it reaches no majority; it reaches a majority that has some peers but not
// all ranks left; or the job has ended and its files cannot be collected.
func (e Ending) saysCutOff() bool {
	return slices.ContainsFunc([]string{noMajority, "lost all its replicas", "could not be collected"},
		func(reason string) bool { return strings.Contains(e.Said, reason) })
}

// A Failure is the removal of a process from the view.
type Failure struct {
	Process
	At  time.Duration // time since the job began to run
	Why string        // reason, in p2prun's words
}

// String describes f for a test report.
func (f Failure) String() string {
	return fmt.Sprintf("%s at %v (%s)", f.Process, f.At.Round(time.Millisecond), f.Why)
}

// Unprovoked returns the failures that no fault explains: before them, no fault that may fail the process had
// hit the process or its machine (V3). harmed holds the time of the first such fault for each process.
func Unprovoked(failures []Failure, harmed map[Process]time.Duration) []Failure {
	var all []Failure
	for _, f := range failures {
		if since, was := harmed[f.Process]; !was || since > f.At {
			all = append(all, f)
		}
	}
	return all
}
