package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"time"
)

// Of the replicas of a rank one transmits and decides, the master. If its machine is
// slower than another's, the whole job waits for it. So each replica finds out for
// how much of the time it is ahead of its master, and says so if that is much;
// whoever makes the views names it master.
//
// How far a program has come is counted in steps: its sends and its nondeterministic
// calls, which are the same at all replicas. Each process remembers when it has come
// how far. A replica that has not seen its master come as far as itself asks, once in
// a tick:
//
//	replica   --- Pace 3, the third question ---> master
//	          <-- PaceReply 3: step 4 at 4.100 s, --
//	              step 5 at 4.109 s, now it is 4.110 s
//
// It is not enough to compare how many steps the two have taken when the master
// answers: a machine that is stopped for nine milliseconds of ten does, once it goes
// on, what there was to do before it answers, and seems level. So the replica compares
// times, for which it needs to compare the clocks: half of the quickest answer ago the
// master's showed what the answer says, as in NTP. That an answer is late is no sign
// of anything.
//
// In programs whose ranks wait for each other a replica is soon ahead by a step and
// no more, until the master takes that one. So what counts is for how much of the time
// it is ahead, by whatever number of steps, against a fifth of all time and twice that
// for which the master is. Machines that are alike are ahead of each other in turn, and
// never say so. A slow one never comes to be ahead again; and each word doubles what
// the next one takes.

const (
	// leadSaid is the time by which a replica has been ahead, in the balance, when it
	// says so: after 0.5 s at the earliest. Moving mastership costs a round of messages.
	leadSaid = 400 * time.Millisecond
	// mostLead is where doubling leadSaid ends.
	mostLead = leadSaid << 12
	// clearPart is the part of a lead that does if it is clear, and clarity how clear that
	// is: the chance that spells of machines that are alike get there is below
	// exp(-clarity²/2), or one in 3,000.
	clearPart = 10
	clarity   = 4
	// longSpell is how long a spell can count.
	longSpell = 10 * time.Millisecond
	// recently is for how long a spell counts: what is older by that counts 1/e.
	recently = 1.5
	// mostCounted is for how much time one answer can count, so that a master that was
	// held up once is not slow for that.
	mostCounted = 100 * time.Millisecond
	// pacePatience is for how long an answer is awaited. It may be lost with its
	// channel.
	pacePatience = time.Second
	// clockDrift is how much faster than the other one of two clocks may be, at most:
	// one part in so many.
	clockDrift = 4096
)

// A pace is what a replica knows of its lead. It is a pure value: time is that of the
// process's own clock.
type pace struct {
	own history

	question uint64        // number of the last one
	asked    time.Duration // when; 0: no answer is awaited
	heard    bool          // an answer of this master
	known    uint64        // steps that it had taken then
	counted  time.Duration // up to when time has been counted
	clocks   comparison

	lead   time.Duration // what has been counted adds up to, at least 0
	need   time.Duration // lead that is said
	spells spells
}

func newPace() pace { return pace{need: leadSaid} }

// tick returns the number of the question that the master is to be asked at a time;
// 0: none.
func (p *pace) tick(now time.Duration) (question uint64) {
	if p.heard && p.known == p.own.last.steps || p.own.last.steps == 0 || p.asked != 0 && now-p.asked < pacePatience {
		return 0
	}
	p.question++
	p.asked = now
	return p.question
}

// hear takes the master's answer to a question at a time, and reports whether to say
// that this process is ahead of it.
func (p *pace) hear(question uint64, a paceAnswer, now time.Duration) (ahead bool) {
	if p.asked == 0 || question != p.question {
		return false
	}
	p.clocks.take(p.asked, a.now, now)
	p.asked = 0
	if p.heard {
		p.count(a, now)
	}
	p.heard, p.known, p.counted = true, a.steps(), p.clocks.own(a.now)
	if !p.leads() {
		return false
	}
	p.lead, p.spells = 0, spells{}
	p.slow()
	return true
}

// leads reports whether the lead is one to be said.
func (p *pace) leads() bool {
	words := float64(p.need) / float64(leadSaid)
	return p.lead >= p.need || p.lead >= p.need/clearPart && p.spells.clear(clarity*clarity*words)
}

// count counts the time that has passed since it was counted last, up to the answer.
func (p *pace) count(a paceAnswer, now time.Duration) {
	to := min(p.clocks.own(a.now), now)
	own, master := p.own.appendTo(nil), a.marks
	for i := range master { // in doubt it was earlier
		master[i].at = p.clocks.own(master[i].at) - p.clocks.doubt()
	}
	from := max(p.counted, to-mostCounted, own[0].at, master[0].at)
	if from >= to {
		return
	}
	p.spells.fade(to - from)
	p.lead -= (to - from) / 5
	for who, lasts := range compare(own, master, from, to) {
		p.spells.take(who, lasts)
		switch who {
		case replicaAhead:
			p.lead += lasts
		case masterAhead:
			p.lead -= 2 * lasts
		}
	}
	p.lead = max(0, p.lead)
}

// Who has taken more steps.
const (
	masterAhead = iota - 1
	level
	replicaAhead
)

// compare yields who had taken more steps, in the parts of some time, and how long each
// is. Both lists have to begin before that time.
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

// Spells sums up for how long the replica was ahead at a time until the two were level
// again, and, as negative ones, for how long the master was.
//
//	replica   |...|      |..|    |..|        +3 +2 +2 -1 = 6
//	level         |......|  |.|..|  |..|
//	master                    ||             √(9+4+4+1) = 4.2: so clear, 1.4
//
// The sum over the root of the sum of squares is a measure that needs no knowledge of
// how long spells are: if each is as likely to be the one's as the other's, then that
// it exceeds z has a probability below exp(-z²/2), whatever their lengths (Efron, Student's
// t-test under symmetry conditions, 1969). One spell alone makes it 1; none counts for
// more than longSpell, so that after a pause the others are soon to be seen again.
type spells struct {
	now          time.Duration // the one that lasts
	sum, squares float64       // of those that have ended, in seconds
}

// take says who has been ahead for how long, next.
func (s *spells) take(who int, lasts time.Duration) {
	if who == level || (s.now < 0) != (who == masterAhead) {
		x := max(-longSpell, min(longSpell, s.now)).Seconds()
		s.sum, s.squares, s.now = s.sum+x, s.squares+x*x, 0
	}
	s.now += time.Duration(who) * lasts
}

// fade lets time pass.
func (s *spells) fade(passed time.Duration) {
	part := math.Exp(-passed.Seconds() / recently)
	s.sum, s.squares = part*s.sum, part*s.squares
}

// clear reports whether it is the replica that has been ahead, and the measure's square
// is as great as this.
func (s *spells) clear(square float64) bool {
	return s.sum > 0 && s.sum*s.sum >= square*s.squares
}

// slow doubles what the next word takes.
func (p *pace) slow() { p.need = min(2*p.need, mostLead) }

// moved says that the rank has another master. demoted: this process was it before.
func (p *pace) moved(demoted bool) {
	p.asked, p.heard, p.lead, p.spells, p.clocks = 0, false, 0, spells{}, comparison{}
	if demoted {
		p.slow()
	}
}

// A history says when a process has come how far.
type history struct {
	last  mark
	marks [paceMarks - 1]mark // earlier ones, markGap apart or more: a ring
	made  int                 // marks so far
}

// A mark says when a process had taken so many steps.
type mark struct {
	steps uint64
	at    time.Duration
}

const (
	// markGap is how exact a history is.
	markGap = 200 * time.Microsecond
	// paceMarks is how far it reaches back: some ticks if steps are quick.
	paceMarks = 128
)

// step takes a step.
func (h *history) step(now time.Duration) {
	if h.made == 0 || now-h.mark(h.made-1).at >= markGap {
		*h.mark(h.made) = h.last
		h.made++
	}
	h.last = mark{h.last.steps + 1, now}
}

func (h *history) mark(i int) *mark { return &h.marks[i%len(h.marks)] }

// appendTo appends what is remembered, the earliest first. It is never nothing.
func (h *history) appendTo(marks []mark) []mark {
	for i := max(0, h.made-len(h.marks)); i < h.made; i++ {
		marks = append(marks, *h.mark(i))
	}
	return append(marks, h.last)
}

// A comparison is of two clocks.
type comparison struct {
	made    bool
	taken   time.Duration // when, on the own clock
	took    time.Duration // the round of question and answer
	further time.Duration // by which the other clock shows more
}

// take takes what the other clock showed at some time between a question and its answer.
// The quickest answer says most. With time it says less, since clocks drift.
func (c *comparison) take(asked, other, now time.Duration) {
	took := now - asked
	if c.made && took > c.took+(now-c.taken)/clockDrift {
		return
	}
	*c = comparison{true, now, took, other - (asked + took/2)}
}

// own returns when the other clock showed a time.
func (c *comparison) own(other time.Duration) time.Duration { return other - c.further }

// doubt returns by how much that may be wrong.
func (c *comparison) doubt() time.Duration { return c.took / 2 }

// A paceAnswer says when a master has come how far, the earliest first, and what its
// clock shows now. It is never without marks.
type paceAnswer struct {
	now   time.Duration
	marks []mark
}

// steps returns how many the master has taken.
func (a paceAnswer) steps() uint64 { return a.marks[len(a.marks)-1].steps }

// markSize is the length of a mark on the wire, in bytes.
const markSize = 16

// longestClock bounds what a clock shows.
const longestClock = time.Duration(1) << 60

var errPace = errors.New("not an answer about its pace")

func (a paceAnswer) encode() []byte {
	b := make([]byte, 0, 8+markSize*len(a.marks))
	b = binary.LittleEndian.AppendUint64(b, uint64(a.now))
	for _, m := range a.marks {
		b = binary.LittleEndian.AppendUint64(b, m.steps)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.at))
	}
	return b
}

// decodePaceAnswer reads what encode writes, and nothing else.
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
