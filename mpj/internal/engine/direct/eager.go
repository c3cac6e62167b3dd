package direct

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// eager reports whether a message of size bytes may be sent eagerly now.
func (o *outflow) eager(size int) bool {
	return size <= o.Limits().Copied && o.credit >= frame.HeaderSize+size
}

// sendEagerly sends a message whose payload remains the caller's.
func (d *transport) sendEagerly(o *outflow, context uint32, tag int32, payload []byte) {
	o.credit -= frame.HeaderSize + len(payload)
	o.seq++
	f := frame.Frame{
		Header:  frame.Header{Kind: frame.Data, Context: context, Rank: uint32(d.rank), Tag: tag, Seq: o.seq, Size: uint64(len(payload))},
		Payload: payload,
	}
	ring := o.Ring()
	if ring != nil && o.Queued() == 0 {
		if done, err := ring.TrySend(f); done || err != nil {
			return // a failed receiver leaves the view
		}
	}
	f.Payload = append(d.loop.LendOut(len(payload)), payload...)
	if p := (engine.Parcel{Frame: f, Pooled: true}); ring != nil {
		o.Put(p)
	} else if o.QueueUp(p) {
		o.WriteNow()
	}
	d.loop.Leave()
}

// sendPinned sends a message eagerly from the caller's buffer, and reports whether it could. r is
// done when the message is acknowledged.
func (d *transport) sendPinned(r *engine.Request, o *outflow, context uint32, tag int32, payload []byte) bool {
	need := frame.HeaderSize + len(payload)
	if o.Ring() != nil || !o.IsOpen() || len(payload) <= o.Limits().Copied || len(payload) > o.Limits().Pinned || o.credit < need {
		return false
	}
	o.credit -= need
	r.Body = payload
	d.loop.BodyPending()
	f := o.numbered(frame.Data)
	f.Context, f.Rank, f.Tag, f.Size, f.Payload = context, uint32(d.rank), tag, uint64(len(payload)), payload
	f.Sync = true // request an immediate acknowledgement, because r waits
	o.Put(engine.Parcel{Frame: f, Owner: r})
	return true
}

// deliver gives m to the receive that matches m, or keeps m.
func (d *transport) deliver(m match.Message) {
	b := d.loop.Mailbox(m.Context)
	if r := engine.RequestOf(b.Claim(m.Source, m.Tag)); r != nil {
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
	if m.Tag == engine.NoticeTag {
		d.keepNotice(b, m)
	} else {
		b.Keep(m)
	}
	b.WakeProbes()
}

// give gives m to receive r, which it has matched.
func (d *transport) give(r *engine.Request, m match.Message) {
	r.Status = engine.StatusOf(m)
	switch {
	case r.Hold != nil:
		*r.Hold = m
		r.Finish()
	case senderOf(m.Ref) != nil:
		d.copySelf(r, senderOf(m.Ref))
	case m.Ref != nil:
		d.clear(r, m)
	default:
		d.consume(m)
		r.Payload = m.Payload
		r.Finish()
	}
}

// claim returns the buffer of a receive for the payload of a frame, if the message matches a
// receive. The match is made when the header arrives.
func (d *transport) claim(link *inflow, h frame.Header) []byte {
	link.duplicate = h.Kind != frame.Ack && h.Seq <= link.seq && h.Seq > 0
	if (h.Kind == frame.Announce || h.Kind == frame.Body && h.Rank == inPlace) && h.Size == engine.AddressSize {
		return link.address[:]
	}
	if link.duplicate || h.Kind != frame.Data && h.Kind != frame.Body || d.loop.Err() != nil {
		return nil
	}
	if link.claimed != h.Seq { // otherwise the frame is a repetition after its channel broke
		link.claimed, link.request = h.Seq, nil
		if h.Kind == frame.Body {
			link.request = link.cleared[nameOf(h)]
		} else {
			link.request = engine.RequestOf(d.loop.Mailbox(h.Context).Claim(link.from.Rank, h.Tag))
		}
	}
	r := link.request
	if r == nil || r.Hold != nil || r.Whole && h.Kind == frame.Data || h.Size > uint64(len(r.Buf)) {
		return nil
	}
	return r.Buf[:h.Size:h.Size]
}

// arrived processes a frame. If claim returned a buffer, that buffer contains the payload.
func (d *transport) arrived(link *inflow, f *frame.Frame) error {
	switch {
	case f.Kind == frame.Ack:
		return d.outflow(link.from.Rank).acknowledged(f.Header)
	case link.duplicate:
		engine.Release(f.Payload)
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
	link.unacked += frame.HeaderSize + int(f.Size)
	if link.frames >= ackFrames || link.unacked >= ackBytes || f.Sync {
		link.acknowledge()
	} else {
		d.loop.Arm()
	}
	return nil
}

func (d *transport) take(link *inflow, f *frame.Frame) error {
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
func dataMessage(f *frame.Frame, source int) match.Message {
	return match.Message{
		Context: f.Context, Tag: f.Tag, Source: source, Seq: f.Seq,
		Size: len(f.Payload), Payload: f.Payload, Sync: f.Sync,
	}
}

func (d *transport) takeData(link *inflow, f *frame.Frame) {
	r := link.request
	link.request = nil
	switch {
	case r == nil:
		d.deliver(dataMessage(f, link.from.Rank))
	case r.Hold != nil || r.Whole || len(f.Payload) > len(r.Buf):
		d.give(r, dataMessage(f, link.from.Rank))
	default: // the payload is in the receive's buffer
		link.consume(len(f.Payload))
		r.Status = engine.Status{Source: link.from.Rank, Tag: f.Tag, Size: len(f.Payload)}
		r.Finish()
	}
}

// selfLimit is the longest message of a process to itself, in bytes, that is copied before its
// receive is posted.
const selfLimit = 64 << 10

// toSelf returns a message of this process to itself.
func (d *transport) toSelf(context uint32, tag int32, payload []byte) match.Message {
	d.selfSeq++
	return match.Message{
		Context: context, Source: d.rank, Tag: tag, Seq: d.selfSeq, Size: len(payload), Payload: payload,
	}
}

// senderOf returns the send of a message with reference ref, if this process is the sender and the
// payload has not arrived.
func senderOf(ref any) *engine.Request {
	r, _ := ref.(*engine.Request)
	return r
}

// sendToSelf delivers a message to this process if a posted receive in b, the mailbox of context,
// matches it, or if it is short and within the credit. It reports whether the message was delivered.
func (d *transport) sendToSelf(b *engine.Mailbox, context uint32, tag int32, payload []byte) bool {
	if r := engine.RequestOf(b.Claim(d.rank, tag)); r != nil {
		m := d.toSelf(context, tag, payload)
		if r.Hold != nil || r.Whole {
			m.Payload = engine.Duplicate(payload)
			d.selfBytes += len(payload) // until it is received, which may be at once
			d.give(r, m)
			return true
		}
		r.Status = engine.StatusOf(m)
		if len(payload) <= len(r.Buf) {
			copy(r.Buf, payload)
		}
		r.Finish()
		return true
	}
	if len(payload) > selfLimit || d.selfBytes+len(payload) > EagerCredit {
		return false
	}
	d.selfBytes += len(payload)
	b.Keep(d.toSelf(context, tag, engine.Duplicate(payload)))
	return true
}

// copySelf moves the payload of a send of this process to itself into receive r, and ends both.
func (d *transport) copySelf(r, sender *engine.Request) {
	switch {
	case r.Whole:
		r.Payload = engine.Duplicate(sender.Body)
	case len(sender.Body) <= len(r.Buf):
		copy(r.Buf, sender.Body)
	}
	d.sentToSelf(sender)
	r.Finish()
}

// sentToSelf ends an announced send of this process to itself.
func (d *transport) sentToSelf(sender *engine.Request) {
	d.loop.BodyDone()
	sender.Body, sender.Announced = nil, false
	sender.Finish()
}
