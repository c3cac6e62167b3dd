package engine

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// Within a machine an announcement says where the payload is, and the receiver
// may read it from there instead of asking for it:
//
//	Announce, address ->  read, when a receive has matched  <- Clear, not needed
//
// That is one copy where a ring has two, and the sender has nothing to do
// meanwhile. The two copies of a ring go on at the same time if there is a
// processor for each: what is better depends on who else wants one.

// readMost bounds the bytes that one pass of progress reads.
const readMost = channel.ReadMost

// A memorySender is a ring whose receiver may read the payloads of this process.
type memorySender interface {
	Address(payload []byte) uint64
}

// A memoryReader is the other end.
type memoryReader interface {
	CanRead() bool
	ReadMemory(address uint64, b []byte) (int, error)
}

// addressSize is the length of an address in the payload of an announcement.
const addressSize = 8

// A reading is a payload on its way out of its sender's memory.
type reading struct {
	in      *inlet
	request *Request
	name    uint64 // of the announcement
	address uint64
	got     int
}

// attachAddress puts into an announcement where its payload is, if anybody may
// read it there. r keeps it, on the heap, until the receiver is done.
func (o *outlet) attachAddress(f *channel.Frame, r *Request) {
	if o.memory != nil && len(r.body) > 0 {
		binary.LittleEndian.PutUint64(r.address[:], o.memory.Address(r.body))
		f.Payload, f.Size = r.address[:], addressSize
	}
}

// reads reports whether m is to be read by this process.
func (e *Engine) reads(in *inlet, m message) bool {
	if m.address == 0 || in.memory == nil || !in.memory.CanRead() {
		return false
	}
	return e.poller.crowded
}

// startReading begins to read m into the buffer of r, which it has matched.
func (e *Engine) startReading(in *inlet, r *Request, m message) {
	e.bodies++
	e.readings = append(e.readings, reading{in: in, request: r, name: m.Seq, address: m.address})
	if in.arriving { // then progress comes to it
		return
	}
	e.readOn()
}

// readOn reads what waits for it, readMost bytes at most, and reports whether
// there was any. It is part of progress. e.mu is held.
func (e *Engine) readOn() (moved bool) {
	for left := readMost; left > 0 && len(e.readings) > 0 && e.err == nil; {
		n, err := e.readPiece(&e.readings[0], left)
		if err != nil {
			e.fail(protocolError(e.readings[0].in.from, err))
			return true
		}
		left -= n
		moved = true
		if awaited := e.poller.awaited; awaited != nil && awaited.woken.Load() {
			break
		}
	}
	return moved
}

// readPiece reads a piece of the first reading, which it removes when that was the
// last.
func (e *Engine) readPiece(g *reading, most int) (int, error) {
	r := g.request
	rest := r.buf[g.got:r.status.Size]
	n, err := g.in.memory.ReadMemory(g.address+uint64(g.got), rest[:min(most, len(rest))])
	switch {
	case errors.Is(err, channel.ErrUnreadable):
		e.askFor(g.in, r, g.name) // in vain if its sender has ended: a view will say so
	case err != nil:
		return 0, err
	case n < len(rest):
		g.got += n
		return n, nil
	default:
		e.answer(g.in.from, g.name, notNeeded)
		r.finish()
	}
	e.bodyDone()
	e.readings = slices.Delete(e.readings, 0, 1)
	return n, nil
}
