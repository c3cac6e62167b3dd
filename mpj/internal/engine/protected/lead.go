package protected

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/lead"
)

// maxAnswers bounds the frames that may be queued for another replica when this process answers its
// question.
const maxAnswers = 64

// leading measures the lead of this process over its master (package lead), and answers the
// questions of the other replicas about the steps of this process. Of the engine, it needs the view,
// the clock, the tick and the queues.
type leading struct {
	p     *transport
	meter lead.Meter
}

// possible reports whether this process may get ahead of its master: it is live, and another process
// is master.
func (l *leading) possible() bool {
	v, self := l.p.loop.View(), l.p.loop.Self()
	return v.Live(self) && !v.IsMaster(self)
}

// step counts a step of the program.
func (l *leading) step() {
	l.meter.Step(l.p.loop.Now())
	if !l.p.decisions.decider && !l.p.loop.Armed() && l.possible() {
		l.p.loop.Arm()
	}
}

// viewChanged resets the measurement if the view has another master of this process's rank than the
// view before.
func (l *leading) viewChanged(before view.View) {
	self := l.p.loop.Self()
	if l.p.loop.View().Since[self.Rank] != before.Since[self.Rank] {
		l.meter.MasterChanged(before.IsMaster(self))
	}
}

// ask asks the master for its progress, if this process may be ahead of the master.
func (l *leading) ask() {
	if !l.possible() {
		return
	}
	if question := l.meter.Tick(l.p.loop.Now()); question != 0 {
		if master, ok := l.p.loop.View().Master(l.p.loop.Self().Rank); ok {
			l.send(master, frame.Pace, question, nil)
		}
	}
	if l.meter.Waits() {
		l.p.loop.Arm()
	}
}

// send sends a question or an answer to another replica of the rank.
func (l *leading) send(to view.Process, kind frame.Kind, question uint64, answer []byte) {
	l.p.queue(to, frame.Frame{
		Header:  frame.Header{Kind: kind, Rank: uint32(l.p.loop.Self().Rank), Seq: question, Size: uint64(len(answer))},
		Payload: answer,
	})
}

// arrived processes a question or an answer of another replica of the rank.
func (l *leading) arrived(from view.Process, f *frame.Frame) error {
	v := l.p.loop.View()
	switch {
	case from.Rank != l.p.loop.Self().Rank || !v.Live(from):
	case f.Kind == frame.Pace:
		if l.p.loop.Outlet(from).Queued() < maxAnswers { // a replica that does not read gets no answers
			l.send(from, frame.PaceReply, f.Seq, l.meter.Answer(l.p.loop.Now()).Encode())
		}
	default:
		a, err := lead.DecodeAnswer(f.Payload)
		if err != nil {
			return err
		}
		if v.IsMaster(from) && l.meter.Receive(f.Seq, a, l.p.loop.Now()) {
			l.p.reports.reportAhead()
		}
		if l.possible() && !l.meter.Level() {
			l.p.loop.Arm()
		}
	}
	return nil
}
