package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A payload that is asked for while the program of its sender computes would be
// put into the ring by the pump, which takes the processor from the program for as
// long as the copy takes. So the pump says where the payload is, and the receiver
// fetches it, piece by piece, while it makes progress:
//
//	Announce ->  <- Clear, needed  Body, in place ->  <- Clear, not needed
//
// A receiver that cannot read there asks once more, and never again gets such a
// Body from this sender.

// fetchPiece is how many bytes are read at once, with the engine's mutex: some
// 60 µs.
const fetchPiece = channel.ReadMost / 4

// inPlace is what the rank of such a Body says. Its payload is the address.
const inPlace = 1

// A fetch is a payload that is being read where its sender has it.
type fetch struct {
	in      *inlet
	request *Request
	name    uint64 // of the message
	address uint64
	got     int // bytes
}

// offers reports whether the receiver at o is to fetch the payload of r: if it can,
// and only the pump is there to do it otherwise.
func (e *Engine) offers(o *outlet, r *Request) bool {
	return len(r.body) > o.limits.Copied && o.memory != nil && !o.hidden && e.poller.pumping && !e.poller.spinning && len(e.sleepers) == 0
}

// offer tells the receiver at o where the payload of r is, and keeps r until it has
// been read.
func (e *Engine) offer(o *outlet, r *Request, name uint64) {
	binary.LittleEndian.PutUint64(r.address[:], o.memory.Address(r.body))
	f := e.numbered(o, frame.Body)
	setName(&f.Header, name)
	f.Rank, f.Payload, f.Size = inPlace, r.address[:], addressSize
	e.put(o, parcel{Frame: f})
}

// takeOffer begins to fetch the payload that a Body in place tells of.
func (e *Engine) takeOffer(in *inlet, f *frame.Frame) error {
	name := nameOf(f.Header)
	r := in.link.cleared[name]
	if r == nil || in.memory == nil || len(f.Payload) != addressSize {
		return fmt.Errorf("offers a body that nobody asked for")
	}
	if !in.memory.CanRead() {
		e.answer(in.from, name, unreadable)
		return nil
	}
	delete(in.link.cleared, name)
	e.poller.fetches = append(e.poller.fetches, &fetch{in: in, request: r, name: name, address: binary.LittleEndian.Uint64(f.Payload)})
	return nil
}

// fetchOne reads the next piece of the first payload that is being fetched.
func (e *Engine) fetchOne() {
	p := &e.poller
	f := p.fetches[0]
	r := f.request
	piece := r.buf[f.got:min(f.got+fetchPiece, r.status.Size)]
	switch err := f.in.memory.ReadMemory(f.address+uint64(f.got), piece); {
	case errors.Is(err, channel.ErrUnreadable):
		f.in.link.cleared[f.name] = r
		e.answer(f.in.from, f.name, unreadable) // in vain if its sender has ended: a view will say so
	case err != nil:
		e.fail(protocolError(f.in.from, err))
		return
	default:
		if f.got += len(piece); f.got < r.status.Size {
			return
		}
		e.answer(f.in.from, f.name, notNeeded)
		e.bodyDone()
		r.finish()
	}
	p.fetches = append(p.fetches[:0], p.fetches[1:]...)
}
