package direct

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// A transport hides the numbers and the credit of each pair of processes, acknowledgements, and the
// ways that a payload may take. The engine's mutex guards it.
type transport struct {
	loop      engine.Loop
	rank      int                // of this process
	outflows  []*outflow         // by rank; nil before this process has sent to the rank
	inflows   []*inflow          // by rank; nil before the rank has opened a channel
	ending    bool               // Flush has begun, so the program receives no more messages
	refused   []engine.Unmatched // announced messages that Flush has refused
	selfSeq   uint64             // number of messages of this process to itself
	selfBytes int                // unmatched bytes of these messages
}

// New returns the transport of an engine, for its configuration.
func New(l engine.Loop) engine.Transport {
	n := l.View().N
	return &transport{loop: l, rank: l.Self().Rank, outflows: make([]*outflow, n), inflows: make([]*inflow, n)}
}

// TrySend sends a message eagerly, or delivers it to this process itself, and reports whether it could.
func (d *transport) TrySend(context uint32, dest int, tag int32, payload []byte, mode engine.Mode) (sent bool) {
	switch {
	case mode == engine.Synchronous:
		return false
	case dest == d.rank:
		return d.sendToSelf(d.loop.Mailbox(context), context, tag, payload)
	}
	o := d.outflow(dest)
	if !o.eager(len(payload)) {
		return false
	}
	d.sendEagerly(o, context, tag, payload)
	return true
}

// Send sends a message from the caller's buffer.
func (d *transport) Send(r *engine.Request, context uint32, dest int, tag int32, payload []byte, mode engine.Mode) {
	loop := d.loop
	attended := r.Attended
	if attended {
		loop.DeferWrites(dest)
	}
	r.Source = dest // the rank whose answer r waits for
	if mode != engine.Standard || dest == d.rank || !d.sendPinned(r, d.outflow(dest), context, tag, payload) {
		d.announce(r, context, dest, tag, payload)
	}
	if attended {
		loop.WriteTo(dest)
	}
}

// Post posts receive r in b, or gives it the message that it matches.
func (d *transport) Post(r *engine.Request, b *engine.Mailbox) error {
	if m, result := b.Post(&r.Recv, true); result == match.Matched {
		d.give(r, m)
	} else if b.Notice && r.Tag == engine.AnyTag {
		b.EndPost(r, engine.ErrNotice)
	}
	return nil
}

// Take gives r the message that a receive from source with tag would take now.
func (d *transport) Take(r *engine.Request, b *engine.Mailbox, source int, tag int32) (found bool, err error) {
	d.loop.Advance()
	m, ok := b.Take(source, tag)
	if !ok || d.loop.Err() != nil {
		return false, d.loop.Err()
	}
	d.give(r, m)
	return true, nil
}

// Fetch gets the payload of m for r.
func (d *transport) Fetch(r *engine.Request, m match.Message) { d.give(r, m) }

// Decide makes the choice of w as soon as it is possible. Waitany, like Wait, first looks at its
// requests.
func (d *transport) Decide(_ uint32, w *engine.Waiter) (values []uint64, err error) {
	if !w.IsWaitany() {
		if d.loop.Err() != nil {
			return nil, d.loop.Err()
		}
		d.loop.Advance()
	}
	err = d.loop.Await(w, func() (ok bool) {
		values, ok = d.loop.Outcome(w)
		return ok
	})
	return values, err
}

// Time returns the time of the engine's clock.
func (d *transport) Time() float64 { return d.loop.Now().Seconds() }

// Replicated returns false.
func (d *transport) Replicated() bool { return false }

// Cancel withdraws posted receive r.
func (d *transport) Cancel(r *engine.Request) {
	d.loop.Mailbox(r.Context()).Withdraw(&r.Recv)
	r.Status = engine.Status{Source: engine.AnySource, Tag: engine.AnyTag, Cancelled: true}
	r.Finish()
}

// Incoming returns the inflow from a process.
func (d *transport) Incoming(from view.Process, ring bool, memory engine.MemoryReader) engine.Handler {
	link := d.inflow(from)
	link.memory = memory
	if ring {
		link.lossless = true
	}
	return link
}

// Sent takes back the payload of a parcel, or ends the send to which it belongs.
func (d *transport) Sent(p engine.Parcel) {
	if p.Pooled {
		d.loop.GiveBack(p.Payload)
	}
	if p.Owner != nil {
		d.loop.BodyDone()
		p.Owner.Body = nil
		p.Owner.Finish()
	}
}

// Written removes the frames that have been acknowledged.
func (d *transport) Written(o *engine.Outlet, _ int) { d.outflow(o.To().Rank).popArrived() }

// Relieve does nothing, because no send waits for a shorter queue.
func (d *transport) Relieve() {}

// Reopened repeats the frames that have not been acknowledged, and the last acknowledgement, which
// may have been lost.
func (d *transport) Reopened(o *engine.Outlet) {
	d.outflow(o.To().Rank).popArrived()
	o.Repeat()
	if link := d.inflows[o.To().Rank]; link != nil {
		link.acknowledge()
	}
}

// openTimeout is the time for which the engine of a job without replicas tries to open a channel
// before it fails. Within that time, an unreachable process may leave the view or become reachable
// again. SetToleratedHang adds the silence that the job tolerates. A new view usually takes less
// than openTimeout.
var openTimeout = 30 * time.Second // a variable for tests

// Unreachable gives up after openTimeout and the silence that the job tolerates.
func (d *transport) Unreachable(to view.Process, since time.Duration, err error) error {
	if since <= openTimeout+d.loop.ToleratedHang() {
		return nil
	}
	return fmt.Errorf("channel to process %v: %w", to, err)
}

// View does nothing: the engine follows the view.
func (d *transport) View(view.View) {}

// Tick acknowledges the frames that have arrived since the last acknowledgement.
func (d *transport) Tick() {
	for _, link := range d.inflows {
		if link != nil && link.frames > 0 {
			link.acknowledge()
		}
	}
}

// Close does nothing.
func (d *transport) Close() {}

// outflow returns the outflow to a rank, and creates it if necessary.
func (d *transport) outflow(rank int) *outflow {
	if o := d.outflows[rank]; o != nil {
		return o
	}
	o := &outflow{Outlet: d.loop.Outlet(view.Process{Rank: rank}), credit: EagerCredit}
	d.outflows[rank] = o
	return o
}

// inflow returns the inflow from a process, and creates it if necessary.
func (d *transport) inflow(from view.Process) *inflow {
	if d.inflows[from.Rank] == nil {
		d.inflows[from.Rank] = &inflow{direct: d, from: from}
	}
	return d.inflows[from.Rank]
}

// consume records that m, an eager message, has been matched.
func (d *transport) consume(m match.Message) {
	if m.Source == d.rank {
		d.selfBytes -= len(m.Payload)
		return
	}
	d.inflows[m.Source].consume(len(m.Payload))
}

// Count adds to w the numbers of frames sent to and received from each rank.
func (d *transport) Count(w *engine.Waiting) {
	for rank, link := range d.inflows {
		if o := d.outflows[rank]; o != nil && o.seq > o.uncounted {
			w.Sent[rank] = o.seq - o.uncounted
		}
		if link != nil && link.seq > link.uncounted {
			w.Received[rank] = link.seq - link.uncounted
		}
	}
}

// SendUncounted sends a message eagerly, regardless of credit, as a frame that Count does not count.
func (d *transport) SendUncounted(context uint32, dest int, payload []byte) {
	o := d.outflow(dest)
	o.uncounted++
	d.sendEagerly(o, context, 0, payload)
}

// ReceivedUncounted records that Count should not count one frame from source.
func (d *transport) ReceivedUncounted(source int) { d.inflows[source].uncounted++ }
