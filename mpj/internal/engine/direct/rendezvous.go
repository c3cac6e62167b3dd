package direct

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// announce sends the header of a message whose payload follows on request. r is done once the
// payload has been sent or is not needed.
func (d *transport) announce(r *engine.Request, context uint32, dest int, tag int32, payload []byte) {
	if dest != d.rank && d.outflow(dest).Dropped() { // dest has finished
		r.Finish()
		return
	}
	r.Announce(context, dest, tag, payload)
	d.loop.BodyPending()
	if dest == d.rank {
		m := d.toSelf(context, tag, nil)
		m.Size, m.Ref = len(payload), r
		d.deliver(m)
		return
	}
	o := d.outflow(dest)
	if o.announced == nil {
		o.announced = make(map[uint64]*engine.Request)
	}
	f := o.numbered(frame.Announce)
	f.Context, f.Tag, f.Rank = context, tag, uint32(len(payload))
	o.attachAddress(&f, r)
	o.announced[f.Seq] = r
	o.Put(engine.Parcel{Frame: f})
}

// numbered returns an empty frame with the next number.
func (o *outflow) numbered(kind frame.Kind) frame.Frame {
	o.seq++
	return frame.Frame{Header: frame.Header{Kind: kind, Seq: o.seq}}
}

// setName stores the number of an announced message in the header of a Clear or a Body.
func setName(h *frame.Header, seq uint64) { h.Context, h.Tag = uint32(seq), int32(uint32(seq>>32)) }

func nameOf(h frame.Header) uint64 { return uint64(h.Context) | uint64(uint32(h.Tag))<<32 }

// Gone ends the announced sends to a process that receives no more messages.
func (d *transport) Gone(o *engine.Outlet) {
	flow := d.outflow(o.To().Rank)
	for name, r := range flow.announced {
		delete(flow.announced, name)
		d.loop.BodyDone()
		r.Finish()
	}
}

// clear gets the payload of an announced match.Message, or tells the sender that the receive has no room
// for it.
func (d *transport) clear(r *engine.Request, m match.Message) {
	link := d.inflows[m.Source]
	switch {
	case r.Whole:
		r.Payload = make([]byte, m.Size)
		r.Buf = r.Payload
	case m.Size > len(r.Buf):
		d.answer(link.from, m.Seq, notNeeded)
		r.Finish()
		return
	}
	if link.reads(m) {
		link.read(r, m)
		return
	}
	d.askFor(link, r, m.Seq)
}

// askFor requests the payload of an announced message for r.
func (d *transport) askFor(link *inflow, r *engine.Request, name uint64) {
	if link.cleared == nil {
		link.cleared = make(map[uint64]*engine.Request)
	}
	link.cleared[name] = r
	d.loop.BodyPending()
	d.answer(link.from, name, needed)
}

// The rank field of a Clear states whether a Body should follow.
const (
	needed     = 0
	notNeeded  = 1 // the receive has no room for the payload, or the payload has been read
	unreadable = 2 // the receiver cannot read the memory; the sender must send the payload through the ring
)

// answer sends a Clear.
func (d *transport) answer(to view.Process, name uint64, need uint32) {
	o := d.outflow(to.Rank)
	f := o.numbered(frame.Clear)
	setName(&f.Header, name)
	f.Rank = need
	o.Put(engine.Parcel{Frame: f})
}

func (d *transport) takeAnnounce(link *inflow, f *frame.Frame) error {
	m := dataMessage(f, link.from.Rank)
	m.Size, m.Payload, m.Ref = int(f.Rank), nil, link
	switch len(f.Payload) {
	case 0:
	case engine.AddressSize:
		m.Address = binary.LittleEndian.Uint64(f.Payload)
	default:
		return fmt.Errorf("announcement with a payload of %d bytes", len(f.Payload))
	}
	f.Payload = nil // the memory is reused
	d.deliver(m)
	return nil
}

func (d *transport) takeClear(from view.Process, h frame.Header) error {
	o := d.outflow(from.Rank)
	r := o.announced[nameOf(h)]
	switch {
	case o.Dropped(): // the sender of the Clear has finished since, so the send is done
		return nil
	case r == nil:
		return fmt.Errorf("request for message %d, which was not announced", nameOf(h))
	}
	r.Announced = false
	if h.Rank == needed && o.offers(r, d.loop.Unattended()) {
		o.offer(r, nameOf(h))
		return nil
	}
	o.hidden = o.hidden || h.Rank == unreadable
	delete(o.announced, nameOf(h))
	if h.Rank == notNeeded {
		d.loop.BodyDone()
		r.Body = nil
		r.Finish()
		return nil
	}
	f := o.numbered(frame.Body)
	setName(&f.Header, nameOf(h))
	f.Payload, f.Size, f.Sync = r.Body, uint64(len(r.Body)), true
	o.Put(engine.Parcel{Frame: f, Owner: r})
	return nil
}

func (d *transport) takeBody(link *inflow, f *frame.Frame) error {
	if f.Rank == inPlace {
		return link.takeOffer(f)
	}
	r := link.request
	link.request = nil
	if r == nil || len(f.Payload) != r.Status.Size {
		return fmt.Errorf("unrequested body of %d bytes", len(f.Payload))
	}
	delete(link.cleared, nameOf(f.Header))
	d.loop.BodyDone()
	r.Finish()
	return nil
}
