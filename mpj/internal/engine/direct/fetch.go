package direct

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
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
	link    *inflow
	request *engine.Request
	name    uint64 // number of the message
	address uint64
	got     int // bytes read so far
}

// offers reports whether the receiver at o should fetch the payload of r, because it can read the
// payload and only the pump could send it: no goroutine of the program attends to the rings.
func (o *outflow) offers(r *engine.Request, unattended bool) bool {
	return len(r.Body) > o.Limits().Copied && o.Memory() != nil && !o.hidden && unattended
}

// offer sends the address of the payload of r to the receiver at o, and keeps r until the payload
// has been read.
func (o *outflow) offer(r *engine.Request, name uint64) {
	binary.LittleEndian.PutUint64(r.Address[:], o.Memory().Address(r.Body))
	f := o.numbered(frame.Body)
	setName(&f.Header, name)
	f.Rank, f.Payload, f.Size = inPlace, r.Address[:], engine.AddressSize
	o.Put(engine.Parcel{Frame: f})
}

// takeOffer begins to fetch the payload of a Body in place.
func (link *inflow) takeOffer(f *frame.Frame) error {
	d := link.direct
	name := nameOf(f.Header)
	r := link.cleared[name]
	if r == nil || link.memory == nil || len(f.Payload) != engine.AddressSize {
		return fmt.Errorf("offer of an unrequested body")
	}
	if !link.memory.CanRead() {
		d.answer(link.from, name, unreadable)
		return nil
	}
	delete(link.cleared, name)
	reading := &fetch{link: link, request: r, name: name, address: binary.LittleEndian.Uint64(f.Payload)}
	d.loop.AlsoDo(reading.next)
	return nil
}

// next reads the next piece of the payload, and reports whether f is done.
func (f *fetch) next() (done bool) {
	d, r := f.link.direct, f.request
	piece := r.Buf[f.got:min(f.got+fetchPiece, r.Status.Size)]
	switch err := f.link.memory.ReadMemory(f.address+uint64(f.got), piece); {
	case errors.Is(err, channel.ErrUnreadable):
		f.link.cleared[f.name] = r
		d.answer(f.link.from, f.name, unreadable) // has no effect if the sender has ended; a view will follow
		return true
	case err != nil:
		d.loop.Fail(engine.Violation(f.link.from, err))
		return false
	}
	if f.got += len(piece); f.got < r.Status.Size {
		return false
	}
	d.answer(f.link.from, f.name, notNeeded)
	d.loop.BodyDone()
	r.Finish()
	return true
}
