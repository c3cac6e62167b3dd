package protected

import (
	"math"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// The methods here implement the calls of the program.

// TrySend passes a message to the protocol if its send ends at once, and reports whether it did.
func (p *transport) TrySend(context uint32, dest int, tag int32, payload []byte, mode engine.Mode) (sent bool) {
	return mode != engine.Synchronous && p.windows.sendAtOnce(context, dest, tag, payload)
}

// Send passes a message to the protocol. The protocol keeps a copy of the payload.
func (p *transport) Send(r *engine.Request, context uint32, dest int, tag int32, payload []byte, mode engine.Mode) {
	m := protection.Message{Context: context, Dest: dest, Tag: tag, Payload: p.loop.CopyOf(payload)}
	if m.Sync = mode == engine.Synchronous; m.Sync {
		p.windows.sendSynchronously(r, m)
	} else {
		p.windows.sendStandard(r, m)
	}
}

// Abandon ends the send of r, which may never be received.
func (p *transport) Abandon(r *engine.Request) { p.windows.endOf(r) }

// Post posts receive r in b. A receive from any source takes a point.
func (p *transport) Post(r *engine.Request, b *engine.Mailbox) error {
	if r.Source == engine.AnySource {
		r.Wild = &match.Wild{Point: match.Point(p.nextPoint(r.Context()))}
		if err := p.decisions.preset(r); err != nil {
			return err
		}
	}
	m, result := b.Post(&r.Recv, p.decisions.decider)
	p.matched(r, m, result)
	return nil
}

// Take decides which message a receive from source with tag would take now, and waits until r has
// received it.
func (p *transport) Take(r *engine.Request, b *engine.Mailbox, source int, tag int32) (found bool, err error) {
	w := engine.NewWaiter()
	defer w.Put()
	w.ChooseMessage(b, source, tag)
	values, err := p.Decide(r.Context(), w)
	if err != nil || len(values) == 0 {
		return false, err
	}
	if len(values) != 2 || values[0] >= uint64(p.loop.View().N) {
		return false, engine.ErrMalformed
	}
	r.Owner, r.Tag, r.Wild = r, tag, new(match.Wild)
	r.Assign(int(values[0]), values[1])
	if err := p.Post(r, b); err != nil {
		return false, err
	}
	return true, p.loop.Wait(r)
}

// nextPoint takes the next point of context for a call of the program.
func (p *transport) nextPoint(context uint32) protection.Point {
	p.leading.step()
	b := p.loop.Mailbox(context)
	b.Points++
	return protection.Point{Context: context, Index: b.Points}
}

// Fetch gives m to r.
func (p *transport) Fetch(r *engine.Request, m match.Message) { r.Complete(m) }

// Drop records that the program will never receive m, which has been acknowledged already.
func (p *transport) Drop(m match.Message) { p.takeUnreceived(m) }

// Replicated returns true.
func (p *transport) Replicated() bool { return true }

// Decide takes a point of context, and waits for its outcome, which is the choice of w. The decider
// chooses whenever w is woken, until there is an outcome.
func (p *transport) Decide(context uint32, w *engine.Waiter) ([]uint64, error) {
	return p.decisions.decide(p.nextPoint(context), w)
}

// Time returns the time of the last decider, which a new decider continues.
func (p *transport) Time() float64 {
	ds := &p.decisions
	w := engine.NewWaiter()
	p.loop.Lock()
	defer p.loop.Unlock()
	defer w.Put()
	w.ChooseNumber(ds.clock)
	values, err := p.Decide(engine.DecisionContext, w)
	if err == nil && len(values) == 1 {
		ds.time = math.Float64frombits(values[0])
		if now := p.loop.Now().Seconds(); !ds.decider || ds.time > now+ds.clockOffset {
			ds.clockOffset = ds.time - now
		}
	}
	return ds.time
}

// Flush implements Transport.Flush.
func (p *transport) Flush(w *engine.Waiter) error { return p.finish.run(w) }

// Checkpoint implements Engine.Checkpoint.
func (p *transport) Checkpoint(c engine.Checkpoint) error { return p.checkpointing.run(c) }

// Sums returns the sums of all sent messages, shortened by protection.Clip.
func (p *transport) Sums() (sums []protection.Sum, ok bool) {
	sums, ok = p.protocol.Sums()
	return protection.Clip(sums), ok
}
