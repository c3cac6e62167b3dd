package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An engine without a protocol (r = 1) moves messages itself, in one of two
// ways:
//
//	eager       Data, with the payload: into the buffer of the receive if there is
//	            one, else into one of the engine's until there is
//	rendezvous  Announce ->  <- Clear, when a receive has matched  Body ->
//	            straight from the sender's buffer to the receiver's
//	            (or the receiver fetches it: see reading.go)
//
// Long and synchronous messages take the second, and so do those for which the
// receiver has granted no more credit: what it must keep is bounded. On a channel
// that may break, those in between go eagerly too, but from the sender's buffer,
// and are done when acknowledged: a round trip there costs more than a ring's. All but Ack
// are numbered for each pair of processes and kept until acknowledged (unless the
// channel is a ring, which cannot break), so that they can go again on a new
// channel, and the receiver knows what it has already.

const (
	// eagerLimit is the length of the longest message that goes eagerly, in bytes.
	// Above it the sender's wait for the receiver costs less than the copy.
	eagerLimit = 64 << 10

	// pinnedLimit is the same for messages that are not copied, on channels that
	// may break.
	pinnedLimit = 1 << 20

	// eagerCredit bounds, in bytes with headers, the eager messages that one
	// process may have sent to another that has not matched them.
	eagerCredit = 2 << 20

	// An acknowledgement goes out after this many frames or bytes, or at the next
	// tick. More of either saves frames, and keeps more at the sender.
	ackFrames = 64
	ackBytes  = 256 << 10
)

// eager reports whether a message of so many bytes may go eagerly now.
func (o *outlet) eager(size int) bool {
	return size <= eagerLimit && o.credit >= channel.HeaderSize+size
}

// sendEagerly sends a message whose payload the caller keeps.
func (e *Engine) sendEagerly(o *outlet, context uint32, tag int32, payload []byte) {
	o.credit -= channel.HeaderSize + len(payload)
	o.seq++
	f := channel.Frame{
		Header:  channel.Header{Kind: channel.Data, Context: context, Rank: uint32(e.self.Rank), Tag: tag, Seq: o.seq, Size: uint64(len(payload))},
		Payload: payload,
	}
	if o.ring != nil && len(o.queue) == 0 {
		if done, err := o.ring.TrySend(f); done || err != nil {
			return // a receiver that is gone leaves the view
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

// sendPinned sends a message eagerly whose payload is the caller's, and reports
// whether it may. r is done when the message is acknowledged.
func (e *Engine) sendPinned(r *Request, o *outlet, context uint32, tag int32, payload []byte) bool {
	need := channel.HeaderSize + len(payload)
	if o.ring != nil || o.sender == nil || len(payload) <= eagerLimit || len(payload) > pinnedLimit || o.credit < need {
		return false
	}
	o.credit -= need
	r.body = payload
	e.bodies++
	f := e.numbered(o, channel.Data)
	f.Context, f.Rank, f.Tag, f.Size, f.Payload = context, uint32(e.self.Rank), tag, uint64(len(payload)), payload
	e.put(o, parcel{Frame: f, owner: r})
	return true
}

// announce sends the header of a message whose payload goes when it is asked
// for. r is done then.
func (e *Engine) announce(r *Request, context uint32, dest int, tag int32, payload []byte) {
	r.context, r.source, r.tag = context, dest, tag                        // dest will ask for it
	if dest != e.self.Rank && e.outlet(view.Process{Rank: dest}).dropped { // it has finished
		r.finish()
		return
	}
	r.body, r.announced = payload, true
	e.bodies++
	if dest == e.self.Rank {
		m := e.toSelf(context, tag, nil)
		m.announced, m.full, m.sender = true, len(payload), r
		e.deliverDirect(m)
		return
	}
	o := e.outlet(view.Process{Rank: dest})
	if o.announced == nil {
		o.announced = make(map[uint64]*Request)
	}
	f := e.numbered(o, channel.Announce)
	f.Context, f.Tag, f.Rank = context, tag, uint32(len(payload))
	o.attachAddress(&f, r)
	o.announced[f.Seq] = r
	e.put(o, parcel{Frame: f})
}

// numbered returns an empty frame with the next number.
func (e *Engine) numbered(o *outlet, kind channel.Kind) channel.Frame {
	o.seq++
	return channel.Frame{Header: channel.Header{Kind: kind, Seq: o.seq}}
}

// setName puts the number of an announced message into the header of a Clear or a
// Body.
func setName(h *channel.Header, seq uint64) { h.Context, h.Tag = uint32(seq), int32(uint32(seq>>32)) }

func nameOf(h channel.Header) uint64 { return uint64(h.Context) | uint64(uint32(h.Tag))<<32 }

// toSelf returns a message of this process to itself.
func (e *Engine) toSelf(context uint32, tag int32, payload []byte) message {
	e.selfSeq++
	return message{Message: protection.Message{
		Context: context, Source: e.self.Rank, Dest: e.self.Rank, Tag: tag, Seq: e.selfSeq, Payload: payload,
	}}
}

// sendToSelf delivers a message to this process, at once if a receive waits for
// it or it is short.
func (e *Engine) sendToSelf(context uint32, tag int32, payload []byte) bool {
	b := e.mailbox(context)
	if r := b.claim(e.self.Rank, tag); r != nil {
		m := e.toSelf(context, tag, payload)
		if r.hold || r.whole {
			m.Payload = duplicate(payload)
			e.give(r, m)
			return true
		}
		r.status = statusOf(m)
		if len(payload) <= len(r.buf) {
			copy(r.buf, payload)
		}
		r.finish()
		return true
	}
	if len(payload) > eagerLimit || e.selfBytes+len(payload) > eagerCredit {
		return false
	}
	e.selfBytes += len(payload)
	b.add(e.toSelf(context, tag, duplicate(payload)))
	return true
}

// deliverDirect gives m to the receive that waits for it, or keeps it.
func (e *Engine) deliverDirect(m message) {
	b := e.mailbox(m.Context)
	if r := b.claim(m.Source, m.Tag); r != nil {
		e.give(r, m)
		return
	}
	if m.announced && e.ending {
		e.refuse(m)
		return
	}
	b.add(m)
	b.wakeProbes()
}

// give gives m to receive r, which it has matched.
func (e *Engine) give(r *Request, m message) {
	r.status = statusOf(m)
	switch {
	case r.hold:
		r.bound = m
		r.finish()
	case m.sender != nil:
		e.copySelf(r, m.sender)
	case m.announced:
		e.clear(r, m)
	default:
		e.consume(m)
		r.payload = m.Payload
		r.finish()
	}
}

// copySelf moves the payload of a send of this process to itself.
func (e *Engine) copySelf(r, sender *Request) {
	switch {
	case r.whole:
		r.payload = duplicate(sender.body)
	case len(sender.body) <= len(r.buf):
		copy(r.buf, sender.body)
	}
	e.sentToSelf(sender)
	r.finish()
}

// sentToSelf ends an announced send of this process to itself.
func (e *Engine) sentToSelf(sender *Request) {
	e.bodyDone()
	sender.body, sender.announced = nil, false
	sender.finish()
}

// bodyDone takes note that a payload waits no more.
func (e *Engine) bodyDone() {
	e.bodies--
	e.flush.wake()
}

// clear gets the payload of an announced message, or tells its sender that
// nobody has room for it.
func (e *Engine) clear(r *Request, m message) {
	in := e.inlets[m.Source]
	switch {
	case r.whole:
		r.payload = make([]byte, m.full)
		r.buf = r.payload
	case m.full > len(r.buf):
		e.answer(in.from, m.Seq, notNeeded)
		r.finish()
		return
	}
	if e.reads(in, m) {
		e.read(in, r, m)
		return
	}
	e.askFor(in, r, m.Seq)
}

// askFor asks for the payload of an announced message, which goes to r.
func (e *Engine) askFor(in *inlet, r *Request, name uint64) {
	if in.link.cleared == nil {
		in.link.cleared = make(map[uint64]*Request)
	}
	in.link.cleared[name] = r
	e.bodies++
	e.answer(in.from, name, needed)
}

// What a Clear says in its rank: whether a Body is to follow.
const (
	needed    = 0
	notNeeded = 1 // there is no room for it, or it has been read
)

// answer sends a Clear.
func (e *Engine) answer(to view.Process, name uint64, need uint32) {
	o := e.outlet(to)
	f := e.numbered(o, channel.Clear)
	setName(&f.Header, name)
	f.Rank = need
	e.put(o, parcel{Frame: f})
}

// consume takes note that an eager message has been matched, and lets its
// sender know from time to time.
func (e *Engine) consume(m message) {
	if m.Source == e.self.Rank {
		e.selfBytes -= len(m.Payload)
		return
	}
	e.consumed(e.inlets[m.Source], len(m.Payload))
}

func (e *Engine) consumed(in *inlet, size int) {
	in.link.consumed += uint32(channel.HeaderSize + size)
	if in.link.consumed-in.link.returned >= eagerCredit/2 {
		e.acknowledge(in)
	}
}

// acknowledge tells a sender what is here and what has been matched.
func (e *Engine) acknowledge(in *inlet) {
	if e.err != nil || in.link == nil || !e.view.Live(in.from) {
		return
	}
	link := in.link
	link.frames, link.unacked, link.returned = 0, 0, link.consumed
	e.put(e.outlet(in.from), parcel{Frame: channel.Frame{Header: channel.Header{
		Kind: channel.Ack, Context: link.consumed, Seq: link.seq,
	}}})
}

// acknowledgeDue acknowledges what has come lately.
func (e *Engine) acknowledgeDue() {
	for _, in := range e.inlets {
		if in != nil && in.link != nil && in.link.frames > 0 {
			e.acknowledge(in)
		}
	}
}

// acknowledged takes an Ack. One that comes late says nothing new.
func (e *Engine) acknowledged(from view.Process, h channel.Header) error {
	o := e.outlet(from)
	if grant := int32(h.Context - o.granted); grant > 0 {
		if o.credit+int(grant) > eagerCredit {
			return fmt.Errorf("consumed more than was sent")
		}
		o.granted = h.Context
		o.credit += int(grant)
	}
	if h.Seq > o.seq {
		return fmt.Errorf("acknowledges frame %d of %d", h.Seq, o.seq)
	}
	n := 0
	for n < o.written && (o.queue[n].Kind == channel.Ack || o.queue[n].Seq <= h.Seq) {
		n++
	}
	e.pop(o, n)
	return nil
}

// claim returns where the payload of a frame goes, if that is the buffer of a
// receive: a match is made when the header is here.
func (e *Engine) claim(link *inflow, from view.Process, h channel.Header) []byte {
	link.duplicate = h.Kind != channel.Ack && h.Seq <= link.seq && h.Seq > 0
	if h.Kind == channel.Announce && h.Size == addressSize {
		return link.address[:]
	}
	if link.duplicate || h.Kind != channel.Data && h.Kind != channel.Body || e.err != nil {
		return nil
	}
	if link.claimed != h.Seq { // else it comes once more, after its channel broke
		link.claimed, link.request = h.Seq, nil
		if h.Kind == channel.Body {
			link.request = link.cleared[nameOf(h)]
		} else {
			link.request = e.mailbox(h.Context).claim(from.Rank, h.Tag)
		}
	}
	r := link.request
	if r == nil || r.hold || r.whole && h.Kind == channel.Data || h.Size > uint64(len(r.buf)) {
		return nil
	}
	return r.buf[:h.Size:h.Size]
}

// arrivedDirect takes a frame whose payload is where claim said.
func (e *Engine) arrivedDirect(in *inlet, f *channel.Frame) error {
	link := in.link
	switch {
	case f.Kind == channel.Ack:
		return e.acknowledged(in.from, f.Header)
	case link.duplicate:
		release(f.Payload)
	case f.Seq != link.seq+1:
		return fmt.Errorf("frame %d after frame %d", f.Seq, link.seq)
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
	if link.frames >= ackFrames || link.unacked >= ackBytes || f.Size > eagerLimit {
		e.acknowledge(in)
	} else {
		e.armTick()
	}
	return nil
}

func (e *Engine) takeDirect(in *inlet, f *channel.Frame) error {
	switch f.Kind {
	case channel.Data:
		e.takeData(in, f)
		return nil
	case channel.Announce:
		return e.takeAnnounce(in, f)
	case channel.Clear:
		return e.takeClear(in.from, f.Header)
	case channel.Body:
		return e.takeBody(in.link, f)
	}
	return fmt.Errorf("unknown without a protocol")
}

func (e *Engine) takeAnnounce(in *inlet, f *channel.Frame) error {
	m := message{announced: true, full: int(f.Rank)}
	switch len(f.Payload) {
	case 0:
	case addressSize:
		m.address = binary.LittleEndian.Uint64(f.Payload)
	default:
		return fmt.Errorf("announcement with %d bytes", len(f.Payload))
	}
	f.Payload = nil // is used again
	m.Message = protection.DataMessage(*f, in.from.Rank, e.self.Rank)
	e.deliverDirect(m)
	return nil
}

func (e *Engine) takeData(in *inlet, f *channel.Frame) {
	r := in.link.request
	in.link.request = nil
	switch {
	case r == nil:
		e.deliverDirect(message{Message: protection.DataMessage(*f, in.from.Rank, e.self.Rank)})
	case r.hold || r.whole || len(f.Payload) > len(r.buf):
		e.give(r, message{Message: protection.DataMessage(*f, in.from.Rank, e.self.Rank)})
	default: // the payload is in its place
		e.consumed(in, len(f.Payload))
		r.status = Status{Source: in.from.Rank, Tag: f.Tag, Size: len(f.Payload)}
		r.finish()
	}
}

func (e *Engine) takeClear(from view.Process, h channel.Header) error {
	o := e.outlet(from)
	r := o.announced[nameOf(h)]
	switch {
	case o.dropped: // from has finished since: the send is done
		return nil
	case r == nil:
		return fmt.Errorf("no message %d was announced", nameOf(h))
	}
	delete(o.announced, nameOf(h))
	r.announced = false
	if h.Rank != needed {
		e.bodyDone()
		r.body = nil
		r.finish()
		return nil
	}
	f := e.numbered(o, channel.Body)
	setName(&f.Header, nameOf(h))
	f.Payload, f.Size = r.body, uint64(len(r.body))
	e.put(o, parcel{Frame: f, owner: r})
	return nil
}

func (e *Engine) takeBody(link *inflow, f *channel.Frame) error {
	r := link.request
	link.request = nil
	if r == nil || len(f.Payload) != r.status.Size {
		return fmt.Errorf("body of %d bytes that nobody asked for", len(f.Payload))
	}
	delete(link.cleared, nameOf(f.Header))
	e.bodyDone()
	r.finish()
	return nil
}
