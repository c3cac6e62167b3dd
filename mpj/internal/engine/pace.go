package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// Of the replicas of a rank one transmits and decides, the master. If its machine is
// slower than another's, the whole job waits for it. So each replica finds out
// whether it is ahead of its master, and says so; whoever makes the views names it
// master.
//
// How far a program has come is counted in steps: its sends and its nondeterministic
// calls, which are the same at all replicas. A replica that has taken more than its
// master was known to have taken, or did lately, asks it how far it is, once in a tick:
//
//	replica, step 7   --- Pace 7 ------> master, step 5
//	                  <-- PaceReply 5 ---
//
// The master's engine answers though its program computes. If it has still not come
// to where the replica was when it asked, the replica is ahead; if it is farther than
// the replica is when the answer comes, the master is. Otherwise the two are level.
// Machines that are alike, and share processors with others, are ahead of each other
// in turn. So it counts twice what the master is ahead, and a little that the two
// are level, against what the replica is: only one that is ahead again and again, of
// a master that hardly ever is, says so. The slow one then never comes to be ahead
// again, and each word doubles what the next one takes.

const (
	// A tick in which the replica is ahead, level, or behind its master counts so much.
	aheadCounts, levelCounts, behindCounts = 8, -2, -16
	// leadSaid is what they add up to when a replica says that it is ahead: 0.75 s
	// if it always is. Moving mastership costs a round of messages.
	leadSaid = 75 * aheadCounts
	// mostLead is where doubling leadSaid ends.
	mostLead = leadSaid << 12
	// patientTicks is for how long an answer of the master is awaited. It may be lost
	// with its channel.
	patientTicks = 100
	// mostWeight is how many ticks one answer can count for, so that a master that was
	// held up once is not slow for that.
	mostWeight = 10
	// maxPaces bounds the frames to another replica behind which it gets no answer.
	maxPaces = 64
)

// A pace is what a replica knows of its lead. It is a pure value: time comes as
// ticks.
type pace struct {
	steps uint64 // of this process's program
	known uint64 // of its master's, at least
	asked uint64 // how many the master was asked about; 0: no answer is awaited
	ticks int    // since then
	lead  int    // what the ticks so far add up to, at least 0
	need  int    // lead that is said
}

func newPace() pace { return pace{need: leadSaid} }

// tick lets a tick pass at a replica, and reports whether to ask the master now.
func (p *pace) tick() (ask bool) {
	if p.asked != 0 {
		if p.ticks++; p.ticks < patientTicks {
			return false
		}
		p.asked = 0
	}
	if p.steps < p.known || p.lead == 0 && p.steps == p.known { // nothing to ask
		p.count(p.known, 1)
		return false
	}
	p.asked, p.ticks = p.steps, 1
	return true
}

// count adds to the lead that for some ticks the master was seen to have taken so
// many steps.
func (p *pace) count(master uint64, ticks int) {
	counts := levelCounts
	switch {
	case p.asked != 0 && master < p.asked:
		counts = aheadCounts
	case master > p.steps:
		counts = behindCounts
	}
	p.lead = max(0, p.lead+counts*ticks)
}

// hear takes the master's answer, and reports whether to say that this process is
// ahead of it.
func (p *pace) hear(steps uint64) (ahead bool) {
	p.known = max(p.known, steps)
	if p.asked == 0 {
		return false
	}
	p.count(steps, min(p.ticks, mostWeight))
	p.asked = 0
	if p.lead < p.need {
		return false
	}
	p.lead = 0
	p.slow()
	return true
}

// slow doubles what the next word takes.
func (p *pace) slow() { p.need = min(2*p.need, mostLead) }

// moved says that the rank has another master. demoted: this process was it before.
func (p *pace) moved(demoted bool) {
	p.known, p.asked, p.lead = 0, 0, 0
	if demoted {
		p.slow()
	}
}

// replica reports whether this process is one that may come to be ahead: it takes
// part, and another is master.
func (e *Engine) replica() bool {
	return e.protocol != nil && e.view.Live(e.self) && !e.view.IsMaster(e.self)
}

// step counts a step of the program. e.mu is held.
func (e *Engine) step() {
	e.pace.steps++
	if !e.decider && !e.ticking && e.replica() {
		e.armTick()
	}
}

// nextPoint takes the next point of context for a call of the program.
func (e *Engine) nextPoint(context uint32) protection.Point {
	e.step()
	return e.mailbox(context).nextPoint(context)
}

// keepPace asks the master how far it is, if this process may be ahead of it.
func (e *Engine) keepPace() {
	if !e.replica() {
		return
	}
	if e.pace.tick() {
		if master, ok := e.view.Master(e.self.Rank); ok {
			e.tellPace(master, channel.Pace, e.pace.steps)
		}
	}
	if e.pace.asked != 0 || e.pace.lead > 0 {
		e.armTick()
	}
}

func (e *Engine) tellPace(to view.Process, kind channel.Kind, steps uint64) {
	e.enqueue(protection.Envelope{To: to, Frame: channel.Frame{
		Header: channel.Header{Kind: kind, Rank: uint32(e.self.Rank), Seq: steps},
	}})
}

// arrivedPace takes a question or an answer of another replica of the rank.
func (e *Engine) arrivedPace(from view.Process, f channel.Header) {
	switch {
	case from.Rank != e.self.Rank || !e.view.Live(from):
	case f.Kind == channel.Pace:
		if len(e.outlet(from).queue) < maxPaces { // who asks is to read, too
			e.tellPace(from, channel.PaceReply, e.pace.steps)
		}
	case e.view.IsMaster(from) && e.pace.hear(f.Seq):
		e.tellAhead()
	}
}

// tellAhead says that this process is ahead of its master. It does not wait. e.mu is
// held.
func (e *Engine) tellAhead() {
	if e.ahead == nil {
		return
	}
	e.running.Add(1)
	go func() { // until ahead returns
		defer e.running.Done()
		e.ahead()
	}()
}
