package direct

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
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

// An outflow is the state of the frames to one process.
type outflow struct {
	*engine.Outlet
	seq       uint64                     // number of the last frame
	arrived   uint64                     // number of the last acknowledged frame
	credit    int                        // bytes that may still be sent eagerly
	granted   uint32                     // bytes that the receiver has reported as consumed so far
	announced map[uint64]*engine.Request // sends whose payload the receiver has not requested, by number
	uncounted uint64                     // number of frames sent by SendUncounted
	hidden    bool                       // the receiver cannot read this process's memory
}

// An inflow is the state of the frames from one process, and the Handler of these frames. It survives
// a change of the channel.
type inflow struct {
	direct    *transport
	from      view.Process
	memory    engine.MemoryReader        // the channel, if this process may read the sender's memory
	seq       uint64                     // number of the last frame that has arrived
	uncounted uint64                     // number of frames received by RecvUncounted
	unacked   int                        // bytes since the last acknowledgement, with headers
	frames    int                        // frames since the last acknowledgement
	consumed  uint32                     // bytes of eager messages that have been matched, modulo 2^32
	returned  uint32                     // the part of consumed that was reported to the sender
	lossless  bool                       // the channel cannot break
	cleared   map[uint64]*engine.Request // receives that wait for the body of a message
	claimed   uint64                     // number of the arriving frame for which request was looked up
	request   *engine.Request            // receive for the arriving frame, or nil
	duplicate bool                       // the arriving frame has arrived before
	address   [engine.AddressSize]byte   // payload of the arriving frame, if the payload is an address
}

// consume records that an eager message of size bytes has been matched. Occasionally it reports the
// matched bytes to the sender.
func (link *inflow) consume(size int) {
	link.consumed += uint32(frame.HeaderSize + size)
	if link.consumed-link.returned >= EagerCredit/2 {
		link.acknowledge()
	}
}

// acknowledge reports to a sender which frames have arrived and how many bytes have been matched.
func (link *inflow) acknowledge() {
	d := link.direct
	if d.loop.Err() != nil || !d.loop.View().Live(link.from) {
		return
	}
	link.frames, link.unacked, link.returned = 0, 0, link.consumed
	d.outflow(link.from.Rank).Put(engine.Parcel{Frame: frame.Frame{Header: frame.Header{
		Kind: frame.Ack, Context: link.consumed, Seq: link.seq,
	}}})
}

// acknowledged processes an Ack. A late Ack has no effect.
func (o *outflow) acknowledged(h frame.Header) error {
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
	if !o.Repeats() {
		o.popArrived()
	}
	return nil
}

// popArrived ends the written frames of o that have arrived, and the written Acks, which are never
// acknowledged.
func (o *outflow) popArrived() {
	n := 0
	for n < o.Written() && (o.Header(n).Kind == frame.Ack || o.Header(n).Seq <= o.arrived) {
		n++
	}
	o.Pop(n)
}

// Buffer returns the buffer for the payload of a frame: that of the matching receive if it is already
// known, or else new memory.
func (link *inflow) Buffer(h frame.Header) []byte {
	if b := link.direct.claim(link, h); b != nil {
		return b
	}
	return link.direct.loop.Room(int(h.Size))
}

// Arrived processes a frame.
func (link *inflow) Arrived(f *frame.Frame) error { return link.direct.arrived(link, f) }

// Reopened reports the arrived frames to the sender, so that it repeats only the rest.
func (link *inflow) Reopened() { link.acknowledge() }
