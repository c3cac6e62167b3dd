package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"time"
)

// One replica of a rank, the master, transmits and decides. If the machine of another replica is
// faster, the whole job waits for the master. So each replica measures the share of the time for
// which it is ahead of its master, and reports a large share. The authority that makes the views
// then makes that replica the master.
//
// Progress of a program is counted in steps: its sends and its nondeterministic calls, which are the
// same at all replicas. Each process records the times of its steps. A replica asks the master once
// per tick while the last answer shows the master at an earlier step:
//
//	replica   --- Pace 3 (third question) ------> master
//	          <-- PaceReply 3: step 4 at 4.100 s, --
//	              step 5 at 4.109 s, now it is 4.110 s
//
// Comparing the two step counts at the time of the answer would not be enough. Suppose that a
// machine is stopped for nine milliseconds of every ten. When it resumes, it takes all pending steps
// before it answers, and seems level. So the replica compares times, for which it estimates the
// offset between the clocks. As in NTP, it assumes that the master read its clock half a round trip
// before the fastest answer arrived. A late answer is not evidence of slowness by itself.
//
// In programs whose ranks wait for each other, a replica is soon ahead by one step, and stays there
// until the master takes that step. So the measure is the time for which the replica is ahead, by
// any number of steps, minus a fifth of all time, minus twice the time for which the master is
// ahead. Equal machines are ahead of each other in turn and hardly ever report a lead. A slow
// machine never gets ahead again. Each report doubles the lead that the next report needs.

const (
	// minLead is the accumulated lead that a replica reports: after 0.5 s at the earliest, unless
	// the lead is clear (clearPart). A change of master costs a round of messages.
	minLead = 400 * time.Millisecond
	// maxLead is the limit of the doubling of minLead.
	maxLead = minLead << 12
	// clearPart is the divisor of the needed lead for a lead that is statistically clear. A lead is
	// clear if the measure of spells reaches clarity, which grows with the needed lead. Spells of
	// equal machines reach it with a probability below exp(-clarity²/2), or one in 3,000.
	clearPart = 10
	clarity   = 4
	// maxSpell is the maximum contribution of one spell.
	maxSpell = 10 * time.Millisecond
	// recently is the decay time of spells, in seconds: within it, the weight of a spell falls to
	// 1/e.
	recently = 1.5
	// maxCounted is the maximum time that one answer can cover, so that a master does not count as
	// slow after a single delay.
	maxCounted = 100 * time.Millisecond
	// paceTimeout is the time after which a replica without an answer asks again. An answer may be
	// lost with its channel.
	paceTimeout = time.Second
	// clockDrift bounds the relative drift of two clocks: one part in clockDrift.
	clockDrift = 4096
)

// A pace is a replica's measurement of its lead. It is a pure value: all times are readings of the
// process's own clock.
type pace struct {
	own history

	question uint64        // number of the last question
	asked    time.Duration // time of the last question; 0 if no answer is pending
	answered bool          // an answer of the present master has arrived
	known    uint64        // number of steps that the master had taken at that answer
	counted  time.Duration // time up to which the lead has been counted
	clocks   comparison

	lead   time.Duration // accumulated lead, at least 0
	need   time.Duration // lead to report
	spells spells
}

func newPace() pace { return pace{need: minLead} }

// tick returns the number of the question to ask the master now, or 0 to ask none.
func (p *pace) tick(now time.Duration) (question uint64) {
	if p.answered && p.known == p.own.last.steps || p.own.last.steps == 0 || p.asked != 0 && now-p.asked < paceTimeout {
		return 0
	}
	p.question++
	p.asked = now
	return p.question
}

// receive processes the master's answer to a question, and reports whether this process should report
// that it is ahead.
func (p *pace) receive(question uint64, a paceAnswer, now time.Duration) (ahead bool) {
	if p.asked == 0 || question != p.question {
		return false
	}
	p.clocks.take(p.asked, a.now, now)
	p.asked = 0
	if p.answered {
		p.count(a, now)
	}
	p.answered, p.known, p.counted = true, a.steps(), p.clocks.own(a.now)
	if !p.leads() {
		return false
	}
	p.lead, p.spells = 0, spells{}
	p.slow()
	return true
}

// leads reports whether the lead is large or clear enough to report.
func (p *pace) leads() bool {
	grown := float64(p.need) / float64(minLead)
	return p.lead >= p.need || p.lead >= p.need/clearPart && p.spells.clear(clarity*clarity*grown)
}

// count accounts for the time from the last counted moment up to the answer.
func (p *pace) count(a paceAnswer, now time.Duration) {
	to := min(p.clocks.own(a.now), now)
	own, master := p.own.appendTo(nil), a.marks
	for i := range master { // within the uncertainty, assume that the master was earlier
		master[i].at = p.clocks.own(master[i].at) - p.clocks.doubt()
	}
	from := max(p.counted, to-maxCounted, own[0].at, master[0].at)
	if from >= to {
		return
	}
	p.spells.fade(to - from)
	p.lead -= (to - from) / 5
	for leader, lasts := range compare(own, master, from, to) {
		p.spells.take(leader, lasts)
		switch leader {
		case replicaAhead:
			p.lead += lasts
		case masterAhead:
			p.lead -= 2 * lasts
		}
	}
	p.lead = max(0, p.lead)
}

// The process that has taken more steps.
const (
	masterAhead = iota - 1
	level
	replicaAhead
)

// compare divides the time between from and to into parts, and yields for each part the process that
// had taken more steps and the length of the part. Both lists must begin before from.
func compare(replica, master []mark, from, to time.Duration) iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		for at := from; at < to; {
			next := to
			for _, marks := range []*[]mark{&replica, &master} {
				for len(*marks) > 1 && (*marks)[1].at <= at {
					*marks = (*marks)[1:]
				}
				if len(*marks) > 1 {
					next = min(next, (*marks)[1].at)
				}
			}
			if !yield(cmp.Compare(replica[0].steps, master[0].steps), next-at) {
				return
			}
			at = next
		}
	}
}

// spells accumulates the lengths of spells. A spell is a time for which one process was ahead, until
// the two were level again. It counts as negative if the master was ahead.
//
//	replica   |...|      |..|    |..|        +3 +2 +2 -1 = 6
//	level         |......|  |.|..|  |..|
//	master                    ||             √(9+4+4+1) = 4.2: so clear, 1.4
//
// The measure is the sum divided by the root of the sum of squares. It does not depend on the
// distribution of the lengths. If each spell belongs to either process with equal probability, the
// measure exceeds z with a probability below exp(-z²/2), whatever the lengths (Efron, Student's
// t-test under symmetry conditions, 1969). The measure of a single spell is 1. No spell counts for
// more than maxSpell, so that a long pause does not hide the other spells for long.
type spells struct {
	now          time.Duration // the current spell; negative if the master is ahead
	sum, squares float64       // sums over the completed spells, in seconds
}

// take records that leader was ahead next, for the time lasts.
func (s *spells) take(leader int, lasts time.Duration) {
	if leader == level || (s.now < 0) != (leader == masterAhead) {
		x := max(-maxSpell, min(maxSpell, s.now)).Seconds()
		s.sum, s.squares, s.now = s.sum+x, s.squares+x*x, 0
	}
	s.now += time.Duration(leader) * lasts
}

// fade reduces the weight of past spells after the time passed.
func (s *spells) fade(passed time.Duration) {
	part := math.Exp(-passed.Seconds() / recently)
	s.sum, s.squares = part*s.sum, part*s.squares
}

// clear reports whether the replica is ahead and the square of the measure is at least square.
func (s *spells) clear(square float64) bool {
	return s.sum > 0 && s.sum*s.sum >= square*s.squares
}

// slow doubles the lead that the next report needs.
func (p *pace) slow() { p.need = min(2*p.need, maxLead) }

// moved resets the measurement for a new master of the rank. demoted reports that this process was
// master before.
func (p *pace) moved(demoted bool) {
	p.asked, p.answered, p.lead, p.spells, p.clocks = 0, false, 0, spells{}, comparison{}
	if demoted {
		p.slow()
	}
}

// A history records the times of a process's steps.
type history struct {
	last  mark
	marks [paceMarks - 1]mark // earlier marks, as a ring; each mark is at least markGap after the last but one
	made  int                 // number of marks so far
}

// A mark is a step count and the time at which a process reached it.
type mark struct {
	steps uint64
	at    time.Duration
}

const (
	// markGap is the time resolution of a history.
	markGap = 200 * time.Microsecond
	// paceMarks bounds the marks of a history. They cover some ticks if steps are fast.
	paceMarks = 128
)

// step records one step.
func (h *history) step(now time.Duration) {
	if h.made == 0 || now-h.mark(h.made-1).at >= markGap {
		*h.mark(h.made) = h.last
		h.made++
	}
	h.last = mark{h.last.steps + 1, now}
}

func (h *history) mark(i int) *mark { return &h.marks[i%len(h.marks)] }

// appendTo appends the recorded marks, earliest first. There is always at least one.
func (h *history) appendTo(marks []mark) []mark {
	for i := max(0, h.made-len(h.marks)); i < h.made; i++ {
		marks = append(marks, *h.mark(i))
	}
	return append(marks, h.last)
}

// A comparison is an estimate of the offset between two clocks.
type comparison struct {
	made      bool
	measured  time.Duration // time of the measurement, on the own clock
	roundTrip time.Duration // round-trip time of question and answer
	offset    time.Duration // lead of the other clock
}

// take adds a reading of the other clock, taken between a question and its answer. The reading with
// the shortest round trip is the most exact. Its weight falls with time because clocks drift.
func (c *comparison) take(asked, other, now time.Duration) {
	roundTrip := now - asked
	if c.made && roundTrip > c.roundTrip+(now-c.measured)/clockDrift {
		return
	}
	*c = comparison{true, now, roundTrip, other - (asked + roundTrip/2)}
}

// own converts a time on the other clock to the own clock.
func (c *comparison) own(other time.Duration) time.Duration { return other - c.offset }

// doubt returns the possible error of own.
func (c *comparison) doubt() time.Duration { return c.roundTrip / 2 }

// A paceAnswer contains the marks of a master, at least one, earliest first, and the reading of its
// clock at the answer.
type paceAnswer struct {
	now   time.Duration
	marks []mark
}

// steps returns the number of steps that the master has taken.
func (a paceAnswer) steps() uint64 { return a.marks[len(a.marks)-1].steps }

// markSize is the length of an encoded mark, in bytes.
const markSize = 16

// longestClock bounds the reading of a clock.
const longestClock = time.Duration(1) << 60

var errPace = errors.New("malformed pace reply")

func (a paceAnswer) encode() []byte {
	b := make([]byte, 0, 8+markSize*len(a.marks))
	b = binary.LittleEndian.AppendUint64(b, uint64(a.now))
	for _, m := range a.marks {
		b = binary.LittleEndian.AppendUint64(b, m.steps)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.at))
	}
	return b
}

// decodePaceAnswer decodes the output of encode and rejects everything else.
func decodePaceAnswer(b []byte) (a paceAnswer, err error) {
	n := (len(b) - 8) / markSize
	if n < 1 || n > paceMarks || len(b) != 8+n*markSize {
		return a, errPace
	}
	a.now = time.Duration(binary.LittleEndian.Uint64(b))
	a.marks = make([]mark, n)
	var before mark
	for i := range a.marks {
		at := b[8+i*markSize:]
		m := mark{binary.LittleEndian.Uint64(at), time.Duration(binary.LittleEndian.Uint64(at[8:]))}
		if m.at < before.at || m.steps < before.steps {
			return paceAnswer{}, errPace
		}
		a.marks[i], before = m, m
	}
	if a.now < before.at || a.now > longestClock {
		return paceAnswer{}, errPace
	}
	return a, nil
}
