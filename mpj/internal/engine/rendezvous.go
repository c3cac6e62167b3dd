package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// announce sends the header of a message whose payload follows on request. r is done once the
// payload has been sent or is not needed.
func (e *Engine) announce(r *Request, context uint32, dest int, tag int32, payload []byte) {
	r.context, r.Source, r.Tag = context, dest, tag                        // dest will request the payload
	if dest != e.self.Rank && e.outlet(view.Process{Rank: dest}).dropped { // dest has finished
		r.finish()
		return
	}
	r.body, r.announced = payload, true
	e.bodies++
	if dest == e.self.Rank {
		m := e.toSelf(context, tag, nil)
		m.Size, m.Ref = len(payload), r
		e.deliverDirect(m)
		return
	}
	o := e.outlet(view.Process{Rank: dest})
	if o.announced == nil {
		o.announced = make(map[uint64]*Request)
	}
	f := e.numbered(o, frame.Announce)
	f.Context, f.Tag, f.Rank = context, tag, uint32(len(payload))
	o.attachAddress(&f, r)
	o.announced[f.Seq] = r
	e.put(o, parcel{Frame: f})
}

// numbered returns an empty frame with the next number.
func (e *Engine) numbered(o *outlet, kind frame.Kind) frame.Frame {
	o.seq++
	return frame.Frame{Header: frame.Header{Kind: kind, Seq: o.seq}}
}

// setName stores the number of an announced message in the header of a Clear or a Body.
func setName(h *frame.Header, seq uint64) { h.Context, h.Tag = uint32(seq), int32(uint32(seq>>32)) }

func nameOf(h frame.Header) uint64 { return uint64(h.Context) | uint64(uint32(h.Tag))<<32 }

// bodyDone records that one pending payload is done.
func (e *Engine) bodyDone() {
	e.bodies--
	e.flush.wake()
}

// clear gets the payload of an announced message, or tells the sender that the receive has no room
// for it.
func (e *Engine) clear(r *Request, m message) {
	in := e.inlets[m.Source]
	switch {
	case r.whole:
		r.payload = make([]byte, m.Size)
		r.buf = r.payload
	case m.Size > len(r.buf):
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

// askFor requests the payload of an announced message for r.
func (e *Engine) askFor(in *inlet, r *Request, name uint64) {
	if in.link.cleared == nil {
		in.link.cleared = make(map[uint64]*Request)
	}
	in.link.cleared[name] = r
	e.bodies++
	e.answer(in.from, name, needed)
}

// The rank field of a Clear states whether a Body should follow.
const (
	needed     = 0
	notNeeded  = 1 // the receive has no room for the payload, or the payload has been read
	unreadable = 2 // the receiver cannot read the memory; the sender must send the payload through the ring
)

// answer sends a Clear.
func (e *Engine) answer(to view.Process, name uint64, need uint32) {
	o := e.outlet(to)
	f := e.numbered(o, frame.Clear)
	setName(&f.Header, name)
	f.Rank = need
	e.put(o, parcel{Frame: f})
}

func (e *Engine) takeAnnounce(in *inlet, f *frame.Frame) error {
	m := dataMessage(f, in.from.Rank)
	m.Size, m.Payload, m.Ref = int(f.Rank), nil, in.link
	switch len(f.Payload) {
	case 0:
	case addressSize:
		m.Address = binary.LittleEndian.Uint64(f.Payload)
	default:
		return fmt.Errorf("announcement with a payload of %d bytes", len(f.Payload))
	}
	f.Payload = nil // the memory is reused
	e.deliverDirect(m)
	return nil
}

func (e *Engine) takeClear(from view.Process, h frame.Header) error {
	o := e.outlet(from)
	r := o.announced[nameOf(h)]
	switch {
	case o.dropped: // the sender of the Clear has finished since, so the send is done
		return nil
	case r == nil:
		return fmt.Errorf("request for message %d, which was not announced", nameOf(h))
	}
	r.announced = false
	if h.Rank == needed && e.offers(o, r) {
		e.offer(o, r, nameOf(h))
		return nil
	}
	o.hidden = o.hidden || h.Rank == unreadable
	delete(o.announced, nameOf(h))
	if h.Rank == notNeeded {
		e.bodyDone()
		r.body = nil
		r.finish()
		return nil
	}
	f := e.numbered(o, frame.Body)
	setName(&f.Header, nameOf(h))
	f.Payload, f.Size, f.Sync = r.body, uint64(len(r.body)), true
	e.put(o, parcel{Frame: f, owner: r})
	return nil
}

func (e *Engine) takeBody(in *inlet, f *frame.Frame) error {
	link := in.link
	if f.Rank == inPlace {
		return e.takeOffer(in, f)
	}
	r := link.request
	link.request = nil
	if r == nil || len(f.Payload) != r.status.Size {
		return fmt.Errorf("unrequested body of %d bytes", len(f.Payload))
	}
	delete(link.cleared, nameOf(f.Header))
	e.bodyDone()
	r.finish()
	return nil
}
