package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// EagerCredit bounds the eager messages that one process may have sent to another and that the other
// has not matched, in bytes including headers.
const EagerCredit = 2 << 20

// An acknowledgement is sent after this many frames or bytes, or at the next tick. Higher values
// save frames, but the sender keeps more messages.
const (
	ackFrames = 64
	ackBytes  = 256 << 10
)

// An inflow is the state of the frames from one process, and the Handler of these frames. It survives
// a change of the channel.
type inflow struct {
	direct    *direct
	from      view.Process
	memory    MemoryReader        // the channel, if this process may read the sender's memory
	seq       uint64              // number of the last frame that has arrived
	uncounted uint64              // number of frames received by RecvUncounted
	unacked   int                 // bytes since the last acknowledgement, with headers
	frames    int                 // frames since the last acknowledgement
	consumed  uint32              // bytes of eager messages that have been matched, modulo 2^32
	returned  uint32              // the part of consumed that was reported to the sender
	lossless  bool                // the channel cannot break
	cleared   map[uint64]*Request // receives that wait for the body of a message
	claimed   uint64              // number of the arriving frame for which request was looked up
	request   *Request            // receive for the arriving frame, or nil
	duplicate bool                // the arriving frame has arrived before
	address   [addressSize]byte   // payload of the arriving frame, if the payload is an address
}

// inflow returns the inflow from a process, and creates it if necessary.
func (d *direct) inflow(from view.Process) *inflow {
	if d.inflows[from.Rank] == nil {
		d.inflows[from.Rank] = &inflow{direct: d, from: from}
	}
	return d.inflows[from.Rank]
}

// consume records that an eager message has been matched. Occasionally it reports the matched bytes
// to the sender.
func (d *direct) consume(m message) {
	if m.Source == d.rank {
		d.selfBytes -= len(m.Payload)
		return
	}
	d.consumed(d.inflows[m.Source], len(m.Payload))
}

func (d *direct) consumed(link *inflow, size int) {
	link.consumed += uint32(frame.HeaderSize + size)
	if link.consumed-link.returned >= EagerCredit/2 {
		d.acknowledge(link)
	}
}

// acknowledge reports to a sender which frames have arrived and how many bytes have been matched.
func (d *direct) acknowledge(link *inflow) {
	e := d.e
	if e.err != nil || !e.view.Live(link.from) {
		return
	}
	link.frames, link.unacked, link.returned = 0, 0, link.consumed
	e.conns.outlet(link.from).put(Parcel{Frame: frame.Frame{Header: frame.Header{
		Kind: frame.Ack, Context: link.consumed, Seq: link.seq,
	}}})
}

// acknowledged processes an Ack. A late Ack has no effect.
func (d *direct) acknowledged(from view.Process, h frame.Header) error {
	o := d.e.conns.outlet(from)
	if grant := int32(h.Context - o.granted); grant > 0 {
		if o.credit+int(grant) > EagerCredit {
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
		o.popArrived()
	}
	return nil
}

// popArrived ends the written frames of o that have arrived, and the written Acks, which are never
// acknowledged.
func (o *Outlet) popArrived() {
	n := 0
	for n < o.written && (o.queue[n].Kind == frame.Ack || o.queue[n].Seq <= o.arrived) {
		n++
	}
	o.Pop(n)
}
