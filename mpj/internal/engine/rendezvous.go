package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// announce sends the header of a message whose payload follows on request. r is done once the
// payload has been sent or is not needed.
func (d *direct) announce(r *Request, context uint32, dest int, tag int32, payload []byte) {
	e := d.e
	r.context, r.Source, r.Tag = context, dest, tag                         // dest will request the payload
	if dest != d.rank && e.conns.outlet(view.Process{Rank: dest}).dropped { // dest has finished
		r.Finish()
		return
	}
	r.body, r.announced = payload, true
	e.conns.poller.bodies++
	if dest == d.rank {
		m := d.toSelf(context, tag, nil)
		m.Size, m.Ref = len(payload), r
		d.deliver(m)
		return
	}
	o := e.conns.outlet(view.Process{Rank: dest})
	if o.announced == nil {
		o.announced = make(map[uint64]*Request)
	}
	f := o.numbered(frame.Announce)
	f.Context, f.Tag, f.Rank = context, tag, uint32(len(payload))
	o.attachAddress(&f, r)
	o.announced[f.Seq] = r
	o.put(Parcel{Frame: f})
}

// numbered returns an empty frame with the next number.
func (o *Outlet) numbered(kind frame.Kind) frame.Frame {
	o.seq++
	return frame.Frame{Header: frame.Header{Kind: kind, Seq: o.seq}}
}

// setName stores the number of an announced message in the header of a Clear or a Body.
func setName(h *frame.Header, seq uint64) { h.Context, h.Tag = uint32(seq), int32(uint32(seq>>32)) }

func nameOf(h frame.Header) uint64 { return uint64(h.Context) | uint64(uint32(h.Tag))<<32 }

// bodyDone records that one pending payload is done.
func (d *direct) bodyDone() {
	d.e.conns.poller.bodies--
	d.e.flush.Wake()
}

// Gone ends the announced sends to a process that receives no more messages.
func (d *direct) Gone(o *Outlet) {
	for name, r := range o.announced {
		delete(o.announced, name)
		d.bodyDone()
		r.Finish()
	}
}

// clear gets the payload of an announced message, or tells the sender that the receive has no room
// for it.
func (d *direct) clear(r *Request, m message) {
	link := d.inflows[m.Source]
	switch {
	case r.whole:
		r.payload = make([]byte, m.Size)
		r.buf = r.payload
	case m.Size > len(r.buf):
		d.answer(link.from, m.Seq, notNeeded)
		r.Finish()
		return
	}
	if d.reads(link, m) {
		d.read(link, r, m)
		return
	}
	d.askFor(link, r, m.Seq)
}

// askFor requests the payload of an announced message for r.
func (d *direct) askFor(link *inflow, r *Request, name uint64) {
	if link.cleared == nil {
		link.cleared = make(map[uint64]*Request)
	}
	link.cleared[name] = r
	d.e.conns.poller.bodies++
	d.answer(link.from, name, needed)
}

// The rank field of a Clear states whether a Body should follow.
const (
	needed     = 0
	notNeeded  = 1 // the receive has no room for the payload, or the payload has been read
	unreadable = 2 // the receiver cannot read the memory; the sender must send the payload through the ring
)

// answer sends a Clear.
func (d *direct) answer(to view.Process, name uint64, need uint32) {
	e := d.e
	o := e.conns.outlet(to)
	f := o.numbered(frame.Clear)
	setName(&f.Header, name)
	f.Rank = need
	o.put(Parcel{Frame: f})
}

func (d *direct) takeAnnounce(link *inflow, f *frame.Frame) error {
	m := dataMessage(f, link.from.Rank)
	m.Size, m.Payload, m.Ref = int(f.Rank), nil, link
	switch len(f.Payload) {
	case 0:
	case addressSize:
		m.Address = binary.LittleEndian.Uint64(f.Payload)
	default:
		return fmt.Errorf("announcement with a payload of %d bytes", len(f.Payload))
	}
	f.Payload = nil // the memory is reused
	d.deliver(m)
	return nil
}

func (d *direct) takeClear(from view.Process, h frame.Header) error {
	e := d.e
	o := e.conns.outlet(from)
	r := o.announced[nameOf(h)]
	switch {
	case o.dropped: // the sender of the Clear has finished since, so the send is done
		return nil
	case r == nil:
		return fmt.Errorf("request for message %d, which was not announced", nameOf(h))
	}
	r.announced = false
	if h.Rank == needed && d.offers(o, r) {
		d.offer(o, r, nameOf(h))
		return nil
	}
	o.hidden = o.hidden || h.Rank == unreadable
	delete(o.announced, nameOf(h))
	if h.Rank == notNeeded {
		d.bodyDone()
		r.body = nil
		r.Finish()
		return nil
	}
	f := o.numbered(frame.Body)
	setName(&f.Header, nameOf(h))
	f.Payload, f.Size, f.Sync = r.body, uint64(len(r.body)), true
	o.put(Parcel{Frame: f, owner: r})
	return nil
}

func (d *direct) takeBody(link *inflow, f *frame.Frame) error {
	if f.Rank == inPlace {
		return d.takeOffer(link, f)
	}
	r := link.request
	link.request = nil
	if r == nil || len(f.Payload) != r.status.Size {
		return fmt.Errorf("unrequested body of %d bytes", len(f.Payload))
	}
	delete(link.cleared, nameOf(f.Header))
	d.bodyDone()
	r.Finish()
	return nil
}
