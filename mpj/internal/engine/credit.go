package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// eagerCredit bounds the eager messages that one process may have sent to another and that the other
// has not matched, in bytes including headers.
const eagerCredit = 2 << 20

// An acknowledgement is sent after this many frames or bytes, or at the next tick. Higher values
// save frames, but the sender keeps more messages.
const (
	ackFrames = 64
	ackBytes  = 256 << 10
)

// consume records that an eager message has been matched. Occasionally it reports the matched bytes
// to the sender.
func (e *Engine) consume(m message) {
	if m.Source == e.self.Rank {
		e.selfBytes -= len(m.Payload)
		return
	}
	e.consumed(e.inlets[m.Source], len(m.Payload))
}

func (e *Engine) consumed(in *inlet, size int) {
	in.link.consumed += uint32(frame.HeaderSize + size)
	if in.link.consumed-in.link.returned >= eagerCredit/2 {
		e.acknowledge(in)
	}
}

// acknowledge reports to a sender which frames have arrived and how many bytes have been matched.
func (e *Engine) acknowledge(in *inlet) {
	if e.err != nil || in.link == nil || !e.view.Live(in.from) {
		return
	}
	link := in.link
	link.frames, link.unacked, link.returned = 0, 0, link.consumed
	e.put(e.outlet(in.from), parcel{Frame: frame.Frame{Header: frame.Header{
		Kind: frame.Ack, Context: link.consumed, Seq: link.seq,
	}}})
}

// acknowledgeDue acknowledges the frames that have arrived since the last acknowledgement.
func (e *Engine) acknowledgeDue() {
	for _, in := range e.inlets {
		if in != nil && in.link != nil && in.link.frames > 0 {
			e.acknowledge(in)
		}
	}
}

// acknowledged processes an Ack. A late Ack has no effect.
func (e *Engine) acknowledged(from view.Process, h frame.Header) error {
	o := e.outlet(from)
	if grant := int32(h.Context - o.granted); grant > 0 {
		if o.credit+int(grant) > eagerCredit {
			return fmt.Errorf("acknowledges more bytes than were sent")
		}
		o.granted = h.Context
		o.credit += int(grant)
	}
	if h.Seq > o.seq {
		return fmt.Errorf("acknowledges frame %d, only %d were sent", h.Seq, o.seq)
	}
	o.arrived = max(o.arrived, h.Seq)
	if !o.again || !o.writing {
		e.popArrived(o)
	}
	return nil
}

// popArrived ends the written frames of o that have arrived, and the written Acks, which are never
// acknowledged.
func (e *Engine) popArrived(o *outlet) {
	n := 0
	for n < o.written && (o.queue[n].Kind == frame.Ack || o.queue[n].Seq <= o.arrived) {
		n++
	}
	e.pop(o, n)
}
