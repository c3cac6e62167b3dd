package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// When a receiver requests a payload while the sender's program computes, the pump would have to put
// the payload into the ring. For the time of the copy, the program would not have the processor. So
// the pump sends the address of the payload, and the receiver fetches the payload piece by piece
// while it makes progress:
//
//	Announce ->  <- Clear, needed  Body, in place ->  <- Clear, not needed
//
// A receiver that cannot read that memory requests the payload again. The sender then never sends it
// such a Body again.

// fetchPiece is the number of bytes read at once, with the engine's mutex held for about 60 µs.
const fetchPiece = channel.ReadMost / 4

// inPlace is the rank field of a Body whose payload is the address of the message's payload.
const inPlace = 1

// A fetch is a payload that is being read from the memory of its sender.
type fetch struct {
	direct  *direct
	link    *inflow
	request *Request
	name    uint64 // number of the message
	address uint64
	got     int // bytes read so far
}

// offers reports whether the receiver at o should fetch the payload of r, because it can read the
// payload and only the pump could send it.
func (d *direct) offers(o *Outlet, r *Request) bool {
	return len(r.body) > o.limits.Copied && o.memory != nil && !o.hidden && d.e.conns.poller.unattended()
}

// offer sends the address of the payload of r to the receiver at o, and keeps r until the payload
// has been read.
func (d *direct) offer(o *Outlet, r *Request, name uint64) {
	binary.LittleEndian.PutUint64(r.address[:], o.memory.Address(r.body))
	f := o.numbered(frame.Body)
	setName(&f.Header, name)
	f.Rank, f.Payload, f.Size = inPlace, r.address[:], addressSize
	o.put(Parcel{Frame: f})
}

// takeOffer begins to fetch the payload of a Body in place.
func (d *direct) takeOffer(link *inflow, f *frame.Frame) error {
	name := nameOf(f.Header)
	r := link.cleared[name]
	if r == nil || link.memory == nil || len(f.Payload) != addressSize {
		return fmt.Errorf("offer of an unrequested body")
	}
	if !link.memory.CanRead() {
		d.answer(link.from, name, unreadable)
		return nil
	}
	delete(link.cleared, name)
	p := &d.e.conns.poller
	reading := &fetch{direct: d, link: link, request: r, name: name, address: binary.LittleEndian.Uint64(f.Payload)}
	p.fetches = append(p.fetches, reading.next)
	return nil
}

// next reads the next piece of the payload, and reports whether f is done.
func (f *fetch) next() (done bool) {
	d, r := f.direct, f.request
	piece := r.buf[f.got:min(f.got+fetchPiece, r.status.Size)]
	switch err := f.link.memory.ReadMemory(f.address+uint64(f.got), piece); {
	case errors.Is(err, channel.ErrUnreadable):
		f.link.cleared[f.name] = r
		d.answer(f.link.from, f.name, unreadable) // has no effect if the sender has ended; a view will follow
		return true
	case err != nil:
		d.e.fail(protocolError(f.link.from, err))
		return false
	}
	if f.got += len(piece); f.got < r.status.Size {
		return false
	}
	d.answer(f.link.from, f.name, notNeeded)
	d.bodyDone()
	r.Finish()
	return true
}
