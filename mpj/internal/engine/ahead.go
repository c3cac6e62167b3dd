package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// maxPaces bounds the frames that may be queued for another replica when this process answers its
// question.
const maxPaces = 64

// mayLead reports whether this process may get ahead of its master: it is live, and another process
// is master.
func (e *Engine) mayLead() bool {
	return e.protocol != nil && e.view.Live(e.self) && !e.view.IsMaster(e.self)
}

// step counts a step of the program. e.mu is held.
func (e *Engine) step() {
	if e.protocol == nil {
		return
	}
	e.pace.own.step(e.clock())
	if !e.decider && !e.tick.armed && e.mayLead() {
		e.armTick()
	}
}

// nextPoint takes the next point of context for a call of the program.
func (e *Engine) nextPoint(context uint32) protection.Point {
	e.step()
	return e.mailbox(context).nextPoint(context)
}

// keepPace asks the master for its progress, if this process may be ahead of the master.
func (e *Engine) keepPace() {
	if !e.mayLead() {
		return
	}
	if question := e.pace.tick(e.clock()); question != 0 {
		if master, ok := e.view.Master(e.self.Rank); ok {
			e.tellPace(master, frame.Pace, question, nil)
		}
	}
	if e.pace.asked != 0 {
		e.armTick()
	}
}

func (e *Engine) tellPace(to view.Process, kind frame.Kind, question uint64, answer []byte) {
	e.enqueue(protection.Envelope{To: to, Frame: frame.Frame{
		Header:  frame.Header{Kind: kind, Rank: uint32(e.self.Rank), Seq: question, Size: uint64(len(answer))},
		Payload: answer,
	}})
}

// arrivedPace processes a question or an answer of another replica of the rank.
func (e *Engine) arrivedPace(from view.Process, f *frame.Frame) error {
	switch {
	case from.Rank != e.self.Rank || !e.view.Live(from):
	case f.Kind == frame.Pace:
		if len(e.conns.outlet(from).queue) < maxPaces { // a replica that does not read gets no answers
			a := paceAnswer{e.clock(), e.pace.own.appendTo(nil)}
			e.tellPace(from, frame.PaceReply, f.Seq, a.encode())
		}
	default:
		a, err := decodePaceAnswer(f.Payload)
		if err != nil {
			return err
		}
		if e.view.IsMaster(from) && e.pace.receive(f.Seq, a, e.clock()) {
			e.tellAhead()
		}
		if e.mayLead() && e.pace.known != e.pace.own.last.steps {
			e.armTick()
		}
	}
	return nil
}

// tellAhead reports that this process is ahead of its master. It does not wait for the callback.
// e.mu is held.
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
