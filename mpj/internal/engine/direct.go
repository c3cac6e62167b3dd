package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// Without replicas, messages travel in one of two ways:
//
//	eager       Data, with the payload: into the buffer of a posted receive, if any,
//	            otherwise into a buffer of the engine until one is posted
//	rendezvous  Announce ->  <- Clear, when a receive has matched  Body ->
//	            directly from the sender's buffer into the receiver's
//	            (or the receiver fetches it: see reading.go)
//
// Long and synchronous messages use rendezvous. So do messages for which the sender has no credit
// left; the credit bounds the memory of the receiver. On a channel that may break, messages of
// medium length are also sent eagerly, but from the sender's buffer. Their sends end when the
// messages are acknowledged. The reason is that a round trip on such a channel costs more than on a
// ring. All frames except Ack are numbered for each pair of processes and kept until acknowledged,
// unless the channel is a ring, which cannot break. So the sender can repeat them on a new channel,
// and the receiver can discard duplicates.

// A direct is the transport of a process without replicas. It hides the numbers and the credit of
// each pair of processes, acknowledgements, and the ways that a payload may take. It needs from the
// engine: the mailboxes and requests, the outlets and inlets, the rings' progress, the pools of
// payloads, the view, the tick and the end of the engine. The engine's mutex guards it.
type direct struct {
	e         *Engine
	rank      int         // of this process
	inflows   []*inflow   // by rank; nil before the rank has opened a channel
	ending    bool        // Flush has begun, so the program receives no more messages
	refused   []Unmatched // announced messages that Flush has refused
	selfSeq   uint64      // number of messages of this process to itself
	selfBytes int         // unmatched bytes of these messages
}

// unopened contains the limits of an outlet whose channel is not open yet.
var unopened = channel.Limits{Copied: 64 << 10}

// eager reports whether a message of size bytes may be sent eagerly now.
func (o *Outlet) eager(size int) bool {
	return size <= o.limits.Copied && o.credit >= frame.HeaderSize+size
}

// sendEagerly sends a message whose payload remains the caller's.
func (d *direct) sendEagerly(o *Outlet, context uint32, tag int32, payload []byte) {
	o.credit -= frame.HeaderSize + len(payload)
	o.seq++
	f := frame.Frame{
		Header:  frame.Header{Kind: frame.Data, Context: context, Rank: uint32(d.rank), Tag: tag, Seq: o.seq, Size: uint64(len(payload))},
		Payload: payload,
	}
	if o.ring != nil && len(o.queue) == 0 {
		if done, err := o.ring.TrySend(f); done || err != nil {
			return // a failed receiver leaves the view
		}
	}
	e := d.e
	f.Payload = append(e.payloads.lendOut(len(payload)), payload...)
	if p := (Parcel{Frame: f, pooled: true}); o.ring != nil {
		o.put(p)
	} else if o.queueUp(p) {
		o.writeNow()
	}
	e.conns.poller.leave()
}

// sendPinned sends a message eagerly from the caller's buffer, and reports whether it could. r is
// done when the message is acknowledged.
func (d *direct) sendPinned(r *Request, o *Outlet, context uint32, tag int32, payload []byte) bool {
	need := frame.HeaderSize + len(payload)
	if o.ring != nil || o.sender == nil || len(payload) <= o.limits.Copied || len(payload) > o.limits.Pinned || o.credit < need {
		return false
	}
	o.credit -= need
	r.body = payload
	d.e.conns.poller.bodies++
	f := o.numbered(frame.Data)
	f.Context, f.Rank, f.Tag, f.Size, f.Payload = context, uint32(d.rank), tag, uint64(len(payload)), payload
	f.Sync = true // request an immediate acknowledgement, because r waits
	o.put(Parcel{Frame: f, owner: r})
	return true
}

// deliver gives m to the receive that matches m, or keeps m.
func (d *direct) deliver(m message) {
	e := d.e
	b := e.mailbox(m.Context)
	if r := RequestOf(b.Claim(m.Source, m.Tag)); r != nil {
		d.give(r, m)
		return
	}
	if b.Abandoned {
		d.Drop(m)
		return
	}
	if m.Ref != nil && d.ending {
		d.refuse(m)
		return
	}
	if m.Tag == NoticeTag {
		d.keepNotice(b, m)
	} else {
		b.Keep(m)
	}
	b.WakeProbes()
}

// give gives m to receive r, which it has matched.
func (d *direct) give(r *Request, m message) {
	r.status = statusOf(m)
	switch {
	case r.hold != nil:
		*r.hold = m
		r.Finish()
	case senderOf(&m) != nil:
		d.copySelf(r, senderOf(&m))
	case m.Ref != nil:
		d.clear(r, m)
	default:
		d.consume(m)
		r.payload = m.Payload
		r.Finish()
	}
}

// claim returns the buffer of a receive for the payload of a frame, if the message matches a
// receive. The match is made when the header arrives.
func (d *direct) claim(link *inflow, h frame.Header) []byte {
	link.duplicate = h.Kind != frame.Ack && h.Seq <= link.seq && h.Seq > 0
	if (h.Kind == frame.Announce || h.Kind == frame.Body && h.Rank == inPlace) && h.Size == addressSize {
		return link.address[:]
	}
	e := d.e
	if link.duplicate || h.Kind != frame.Data && h.Kind != frame.Body || e.err != nil {
		return nil
	}
	if link.claimed != h.Seq { // otherwise the frame is a repetition after its channel broke
		link.claimed, link.request = h.Seq, nil
		if h.Kind == frame.Body {
			link.request = link.cleared[nameOf(h)]
		} else {
			link.request = RequestOf(e.mailbox(h.Context).Claim(link.from.Rank, h.Tag))
		}
	}
	r := link.request
	if r == nil || r.hold != nil || r.whole && h.Kind == frame.Data || h.Size > uint64(len(r.buf)) {
		return nil
	}
	return r.buf[:h.Size:h.Size]
}

// arrived processes a frame. If claim returned a buffer, that buffer contains the payload.
func (d *direct) arrived(link *inflow, f *frame.Frame) error {
	switch {
	case f.Kind == frame.Ack:
		return d.acknowledged(link.from, f.Header)
	case link.duplicate:
		release(f.Payload)
	case f.Seq != link.seq+1:
		return fmt.Errorf("received frame %d after frame %d", f.Seq, link.seq)
	default:
		link.seq++
		if err := d.take(link, f); err != nil {
			return fmt.Errorf("frame of kind %d: %w", f.Kind, err)
		}
	}
	if link.lossless {
		return nil
	}
	link.frames++
	link.unacked += size(*f)
	if link.frames >= ackFrames || link.unacked >= ackBytes || f.Sync {
		d.acknowledge(link)
	} else {
		d.e.armTick()
	}
	return nil
}

func (d *direct) take(link *inflow, f *frame.Frame) error {
	switch f.Kind {
	case frame.Data:
		d.takeData(link, f)
		return nil
	case frame.Announce:
		return d.takeAnnounce(link, f)
	case frame.Clear:
		return d.takeClear(link.from, f.Header)
	case frame.Body:
		return d.takeBody(link, f)
	}
	return fmt.Errorf("not allowed without replicas")
}

// dataMessage returns the message in a Data frame from rank source.
func dataMessage(f *frame.Frame, source int) message {
	return message{
		Context: f.Context, Tag: f.Tag, Source: source, Seq: f.Seq,
		Size: len(f.Payload), Payload: f.Payload, Sync: f.Sync,
	}
}

func (d *direct) takeData(link *inflow, f *frame.Frame) {
	r := link.request
	link.request = nil
	switch {
	case r == nil:
		d.deliver(dataMessage(f, link.from.Rank))
	case r.hold != nil || r.whole || len(f.Payload) > len(r.buf):
		d.give(r, dataMessage(f, link.from.Rank))
	default: // the payload is in the receive's buffer
		d.consumed(link, len(f.Payload))
		r.status = Status{Source: link.from.Rank, Tag: f.Tag, Size: len(f.Payload)}
		r.Finish()
	}
}
