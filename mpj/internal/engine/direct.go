package engine

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An engine without a protocol (r = 1) moves messages itself, in one of two ways:
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

// unopened contains the limits of an outlet whose channel is not open yet.
var unopened = channel.Limits{Copied: 64 << 10}

// eager reports whether a message of size bytes may be sent eagerly now.
func (o *outlet) eager(size int) bool {
	return size <= o.limits.Copied && o.credit >= frame.HeaderSize+size
}

// sendEagerly sends a message whose payload remains the caller's.
func (e *Engine) sendEagerly(o *outlet, context uint32, tag int32, payload []byte) {
	o.credit -= frame.HeaderSize + len(payload)
	o.seq++
	f := frame.Frame{
		Header:  frame.Header{Kind: frame.Data, Context: context, Rank: uint32(e.self.Rank), Tag: tag, Seq: o.seq, Size: uint64(len(payload))},
		Payload: payload,
	}
	if o.ring != nil && len(o.queue) == 0 {
		if done, err := o.ring.TrySend(f); done || err != nil {
			return // a failed receiver leaves the view
		}
	}
	f.Payload = append(e.lendOut(len(payload)), payload...)
	if p := (parcel{Frame: f, pooled: true}); o.ring != nil {
		e.put(o, p)
	} else if e.queueUp(o, p) {
		e.writeNow(o)
	}
	e.leave()
}

// sendPinned sends a message eagerly from the caller's buffer, and reports whether it could. r is
// done when the message is acknowledged.
func (e *Engine) sendPinned(r *Request, o *outlet, context uint32, tag int32, payload []byte) bool {
	need := frame.HeaderSize + len(payload)
	if o.ring != nil || o.sender == nil || len(payload) <= o.limits.Copied || len(payload) > o.limits.Pinned || o.credit < need {
		return false
	}
	o.credit -= need
	r.body = payload
	e.bodies++
	f := e.numbered(o, frame.Data)
	f.Context, f.Rank, f.Tag, f.Size, f.Payload = context, uint32(e.self.Rank), tag, uint64(len(payload)), payload
	f.Sync = true // request an immediate acknowledgement, because r waits
	e.put(o, parcel{Frame: f, owner: r})
	return true
}

// deliverDirect gives m to the receive that matches m, or keeps m.
func (e *Engine) deliverDirect(m message) {
	b := e.mailbox(m.Context)
	if r := requestOf(b.Claim(m.Source, m.Tag)); r != nil {
		e.give(r, m)
		return
	}
	if b.abandoned {
		e.discard(m)
		return
	}
	if m.Ref != nil && e.ending {
		e.refuse(m)
		return
	}
	if m.Tag == NoticeTag {
		e.keepNotice(b, m)
	} else {
		b.Keep(m)
	}
	b.wakeProbes()
}

// give gives m to receive r, which it has matched.
func (e *Engine) give(r *Request, m message) {
	r.status = statusOf(m)
	switch {
	case r.hold != nil:
		*r.hold = m
		r.finish()
	case senderOf(&m) != nil:
		e.copySelf(r, senderOf(&m))
	case m.Ref != nil:
		e.clear(r, m)
	default:
		e.consume(m)
		r.payload = m.Payload
		r.finish()
	}
}

// claim returns the buffer of a receive for the payload of a frame, if the message matches a
// receive. The match is made when the header arrives.
func (e *Engine) claim(link *inflow, from view.Process, h frame.Header) []byte {
	link.duplicate = h.Kind != frame.Ack && h.Seq <= link.seq && h.Seq > 0
	if (h.Kind == frame.Announce || h.Kind == frame.Body && h.Rank == inPlace) && h.Size == addressSize {
		return link.address[:]
	}
	if link.duplicate || h.Kind != frame.Data && h.Kind != frame.Body || e.err != nil {
		return nil
	}
	if link.claimed != h.Seq { // otherwise the frame is a repetition after its channel broke
		link.claimed, link.request = h.Seq, nil
		if h.Kind == frame.Body {
			link.request = link.cleared[nameOf(h)]
		} else {
			link.request = requestOf(e.mailbox(h.Context).Claim(from.Rank, h.Tag))
		}
	}
	r := link.request
	if r == nil || r.hold != nil || r.whole && h.Kind == frame.Data || h.Size > uint64(len(r.buf)) {
		return nil
	}
	return r.buf[:h.Size:h.Size]
}

// arrivedDirect processes a frame. If claim returned a buffer, that buffer contains the payload.
func (e *Engine) arrivedDirect(in *inlet, f *frame.Frame) error {
	link := in.link
	switch {
	case f.Kind == frame.Ack:
		return e.acknowledged(in.from, f.Header)
	case link.duplicate:
		release(f.Payload)
	case f.Seq != link.seq+1:
		return fmt.Errorf("received frame %d after frame %d", f.Seq, link.seq)
	default:
		link.seq++
		if err := e.takeDirect(in, f); err != nil {
			return fmt.Errorf("frame of kind %d: %w", f.Kind, err)
		}
	}
	if link.lossless {
		return nil
	}
	link.frames++
	link.unacked += size(*f)
	if link.frames >= ackFrames || link.unacked >= ackBytes || f.Sync {
		e.acknowledge(in)
	} else {
		e.armTick()
	}
	return nil
}

func (e *Engine) takeDirect(in *inlet, f *frame.Frame) error {
	switch f.Kind {
	case frame.Data:
		e.takeData(in, f)
		return nil
	case frame.Announce:
		return e.takeAnnounce(in, f)
	case frame.Clear:
		return e.takeClear(in.from, f.Header)
	case frame.Body:
		return e.takeBody(in, f)
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

func (e *Engine) takeData(in *inlet, f *frame.Frame) {
	r := in.link.request
	in.link.request = nil
	switch {
	case r == nil:
		e.deliverDirect(dataMessage(f, in.from.Rank))
	case r.hold != nil || r.whole || len(f.Payload) > len(r.buf):
		e.give(r, dataMessage(f, in.from.Rank))
	default: // the payload is in the receive's buffer
		e.consumed(in, len(f.Payload))
		r.status = Status{Source: in.from.Rank, Tag: f.Tag, Size: len(f.Payload)}
		r.finish()
	}
}
