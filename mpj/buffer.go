package mpj

import (
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// BsendOverhead is the space, in bytes, that a buffered-mode message takes in the attached buffer
// in addition to its payload. It bounds the number of empty messages in transit.
const BsendOverhead = 64

// A sendBuffer accounts for the messages sent in buffered mode. Their memory is garbage-collected;
// the sendBuffer only limits the total size.
//
// Space is reclaimed only when a message needs it. The set of messages that have been sent by then
// depends on timing, so it is a decision of the engine, which is the same at all replicas.
type sendBuffer struct {
	mu         sync.Mutex
	size, used int // bytes
	attached   bool
	requests   []*engine.Request // sends in progress; spaces contains the space of each
	spaces     []int
}

// BufferAttach provides size bytes for the messages that this process sends in buffered mode. Each
// message takes its length plus BsendOverhead.
func (w *World) BufferAttach(size int) error {
	b := &w.buffered
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case size < 0:
		return w.failf(ErrArg, "BufferAttach", "size %d", size)
	case b.attached:
		return w.failf(ErrBuffer, "BufferAttach", "a buffer of %d bytes is attached: detach it first", b.size)
	}
	b.size, b.attached = size, true
	return nil
}

// BufferDetach waits until all buffered messages have been sent, detaches the buffer, and returns
// its size.
func (w *World) BufferDetach() (size int, err error) {
	b := &w.buffered
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.attached {
		return 0, w.failf(ErrBuffer, "BufferDetach", "no buffer is attached")
	}
	for _, r := range b.requests {
		if _, err := w.engine().Wait(r); err != nil {
			return 0, w.wrap("BufferDetach", err)
		}
	}
	size = b.size
	b.size, b.used, b.attached = 0, 0, false
	b.requests, b.spaces = nil, nil
	return size, nil
}

// reserve checks that there is space for one message, or returns ErrBuffer. The caller holds b.mu.
func (b *sendBuffer) reserve(c *Comm, op string, space int) error {
	if b.used+space > b.size && len(b.requests) > 0 {
		if err := b.reclaim(c.engine()); err != nil {
			return c.wrap(op, err)
		}
	}
	if b.used+space > b.size {
		return c.failf(ErrBuffer, op, "the message needs %d bytes, %d of %d attached bytes are free", space, b.size-b.used, b.size)
	}
	return nil
}

// reclaim frees the space of the messages that have been sent.
func (b *sendBuffer) reclaim(e *engine.Engine) error {
	done, err := e.Testsome(b.requests)
	if err != nil {
		return err
	}
	slices.Sort(done)
	for _, i := range slices.Backward(done) {
		b.used -= b.spaces[i]
		b.requests = slices.Delete(b.requests, i, i+1)
		b.spaces = slices.Delete(b.spaces, i, i+1)
	}
	return nil
}

// Bsend is Send in buffered mode: it copies the message to the buffer that BufferAttach has
// provided, and so never waits. It returns ErrBuffer if the buffer has too little free space.
func Bsend[T Element](c *Comm, buf []T, dest, tag int) error {
	if err := c.checkDest("Bsend", dest, tag); err != nil {
		return err
	}
	_, err := c.startBuffered("Bsend", slices.Clone(bytesOf(buf)), dest, tag)
	return c.wrap("Bsend", err)
}

// BsendTyped is Bsend for items of a datatype.
func BsendTyped(c *Comm, x Typed, dest, tag int) error {
	r, err := c.ibsendTyped("BsendTyped", x, dest, tag)
	if err != nil {
		return err
	}
	_, err = r.Wait()
	return err
}

// Ibsend is the nonblocking form of Bsend. Its request is complete at once.
func Ibsend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	const op = "Ibsend"
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, op: op, description: c.describeSend(op, bytesOf(buf), dest, tag), null: dest == ProcNull}
	return r.begun(c.startBuffered(op, slices.Clone(bytesOf(buf)), dest, tag))
}

// IbsendTyped is the nonblocking form of BsendTyped.
func IbsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return c.ibsendTyped("IbsendTyped", x, dest, tag)
}

func (c *Comm) ibsendTyped(op string, x Typed, dest, tag int) (*Request, error) {
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	b := x.buffer.Append(nil)
	r := &Request{comm: c, op: op, description: c.describeSend(op, b, dest, tag), null: dest == ProcNull}
	return r.begun(c.startBuffered(op, b, dest, tag))
}

// startBuffered starts a buffered-mode send of payload, which the caller must not use afterwards,
// and returns a completed request.
func (c *Comm) startBuffered(op string, payload []byte, dest, tag int) (*engine.Request, error) {
	if dest == ProcNull {
		return c.startNothing(), nil
	}
	b, space := &c.world.buffered, len(payload)+BsendOverhead
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.reserve(c, op, space); err != nil {
		return nil, err
	}
	r, err := c.startSend(engineapi.Standard, payload, dest, tag)
	if err != nil {
		return nil, err
	}
	b.used += space
	b.requests, b.spaces = append(b.requests, r), append(b.spaces, space)
	return c.startNothing(), nil
}
