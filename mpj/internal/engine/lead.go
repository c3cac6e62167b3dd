package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/lead"
)

// maxAnswers bounds the frames that may be queued for another replica when this process answers its
// question.
const maxAnswers = 64

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
	e.lead.Step(e.clock())
	if !e.decider && !e.ticking && e.mayLead() {
		e.armTick()
	}
}

// nextPoint takes the next point of context for a call of the program.
func (e *Engine) nextPoint(context uint32) protection.Point {
	e.step()
	return e.mailbox(context).nextPoint(context)
}

// askMaster asks the master for its progress, if this process may be ahead of the master.
func (e *Engine) askMaster() {
	if !e.mayLead() {
		return
	}
	if question := e.lead.Tick(e.clock()); question != 0 {
		if master, ok := e.view.Master(e.self.Rank); ok {
			e.sendLead(master, frame.Pace, question, nil)
		}
	}
	if e.lead.Waits() {
		e.armTick()
	}
}

// sendLead sends a question or an answer to another replica of the rank.
func (e *Engine) sendLead(to view.Process, kind frame.Kind, question uint64, answer []byte) {
	e.enqueue(protection.Envelope{To: to, Frame: frame.Frame{
		Header:  frame.Header{Kind: kind, Rank: uint32(e.self.Rank), Seq: question, Size: uint64(len(answer))},
		Payload: answer,
	}})
}

// arrivedLead processes a question or an answer of another replica of the rank.
func (e *Engine) arrivedLead(from view.Process, f *frame.Frame) error {
	switch {
	case from.Rank != e.self.Rank || !e.view.Live(from):
	case f.Kind == frame.Pace:
		if len(e.outlet(from).queue) < maxAnswers { // a replica that does not read gets no answers
			e.sendLead(from, frame.PaceReply, f.Seq, e.lead.Answer(e.clock()).Encode())
		}
	default:
		a, err := lead.DecodeAnswer(f.Payload)
		if err != nil {
			return err
		}
		if e.view.IsMaster(from) && e.lead.Receive(f.Seq, a, e.clock()) {
			e.reportAhead()
		}
		if e.mayLead() && !e.lead.Level() {
			e.armTick()
		}
	}
	return nil
}

// reportAhead reports that this process is ahead of its master. It does not wait for the callback.
// e.mu is held.
func (e *Engine) reportAhead() {
	if e.ahead == nil {
		return
	}
	e.running.Add(1)
	go func() { // until ahead returns
		defer e.running.Done()
		e.ahead()
	}()
}
