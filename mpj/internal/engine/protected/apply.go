package protected

import (
	"errors"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// outputs holds the deliveries and outcomes that the protocol has returned and that have not taken
// effect.
type outputs struct {
	running    bool // carryOut is processing the other fields
	deliveries []protection.Message
	outcomes   []protection.Determinant
}

// apply carries out an output of the protocol. Deliveries and outcomes may cause further calls of
// the protocol. So apply copies the deliveries and outcomes first, and only the outermost call of
// apply processes them.
func (p *transport) apply(out protection.Output) {
	if out.Lost != "" {
		p.loop.Fail(errors.New(out.Lost))
		return
	}
	if p.decisions.decider && !p.protocol.Decider() {
		p.decisions.stepDown()
	}
	for _, envelope := range out.Send {
		if p.rejoin.postpone(envelope) {
			continue
		}
		p.retained.hold(envelope.Frame.Payload)
		p.queue(envelope.To, envelope.Frame)
	}
	for _, payload := range out.Released {
		p.retained.release(payload)
	}
	p.report(&out)
	for _, r := range out.LogRequests {
		p.rejoin.sendPiece(r)
	}
	if len(out.State) > 0 {
		p.checkpointing.takeState(out.State)
	}
	p.rejoin.keep(out)
	p.outputs.deliveries = append(p.outputs.deliveries, out.Deliver...)
	p.outputs.outcomes = append(p.outputs.outcomes, out.Decided...)
	if p.outputs.running {
		return
	}
	p.carryOut()
	if p.protocol.Waiting() {
		p.loop.Arm()
	}
	if !p.decisions.decider && p.protocol.Decider() {
		p.decisions.takeOver()
	}
	p.rejoin.review()
}

// report passes on the statements of an output about replicas.
func (p *transport) report(out *protection.Output) {
	for _, d := range out.Diverged {
		p.reports.reportDivergence(d)
	}
	if out.UpToDate != (protection.UpToDate{}) {
		p.reports.reportUpToDate(out.UpToDate)
	}
}

// carryOut makes the deliveries and outcomes take effect, including those that it causes. Outcomes
// come first.
func (p *transport) carryOut() {
	o := &p.outputs
	o.running = true
	for i, j := 0, 0; i < len(o.deliveries) || j < len(o.outcomes); {
		if j < len(o.outcomes) {
			p.decisions.decided(o.outcomes[j])
			j++
			continue
		}
		p.deliver(o.deliveries[i])
		i++
	}
	clear(o.deliveries)
	clear(o.outcomes)
	o.deliveries, o.outcomes = o.deliveries[:0], o.outcomes[:0]
	o.running = false
}

// deliver gives a message of the protocol to the receive that matches it, or keeps the message.
func (p *transport) deliver(m protection.Message) {
	b := p.loop.Mailbox(m.Context)
	if b.Abandoned {
		p.takeUnreceived(arrivedMessage(&m))
		return
	}
	r, taken, result := b.Arrive(arrivedMessage(&m), p.decisions.decider)
	if result != match.Waits {
		p.matched(engine.RequestOf(r), taken, result)
	} else if p.finish.ending {
		p.finish.drop(b.Last())
	}
	b.WakeProbes()
}

// settle makes all matches that have become possible in b.
func (p *transport) settle(b *engine.Mailbox) {
	for {
		r, m, result := b.Next(p.decisions.decider)
		if result == match.Waits {
			b.WakeProbes()
			return
		}
		p.matched(engine.RequestOf(r), m, result)
	}
}

// matched completes r with m if r has matched m, and proposes m if r is a wildcard whose outcome is
// not decided.
func (p *transport) matched(r *engine.Request, m match.Message, result match.Result) {
	switch result {
	case match.Proposed:
		p.decisions.propose(r, m)
	case match.Matched:
		p.complete(r, m)
	}
}

// complete ends receive r with m.
func (p *transport) complete(r *engine.Request, m match.Message) {
	p.windows.take(&m)
	p.notices.matched(m)
	r.Complete(m)
}

// takeUnreceived records that the program will never receive m.
func (p *transport) takeUnreceived(m match.Message) {
	p.windows.take(&m)
	p.notices.matched(m)
}

// arrivedMessage returns a message of the protocol for its mailbox.
func arrivedMessage(m *protection.Message) match.Message {
	return match.Message{
		Context: m.Context, Tag: m.Tag, Source: m.Source, Seq: m.Seq,
		Size: len(m.Payload), Payload: m.Payload, Sync: m.Sync,
	}
}

// unreceivedMessage returns a message to this rank for a snapshot.
func unreceivedMessage(m *match.Message, dest int) protection.Message {
	return protection.Message{
		Context: m.Context, Tag: m.Tag, Source: m.Source, Dest: dest, Seq: m.Seq, Payload: m.Payload, Sync: m.Sync,
	}
}

// reviewStall reports that the rank waits for an outcome, if it has waited for long.
func (p *transport) reviewStall() {
	if !p.protocol.Waiting() {
		p.stall.ticks, p.stall.limit = 0, 0
		return
	}
	if p.stall.tick() {
		p.reports.reportStall()
	}
	p.loop.Arm()
}
