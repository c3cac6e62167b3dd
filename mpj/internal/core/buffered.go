package core

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

// AttachBuffer provides size bytes for the messages that the process of c sends in buffered mode.
// Each message takes its length plus BsendOverhead.
func AttachBuffer(c *Comm, size int) error {
	b := &c.process.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case size < 0:
		return c.Failf(ErrArg, "size %d", size)
	case b.attached:
		return c.Failf(ErrBuffer, "a buffer of %d bytes is attached: detach it first", b.size)
	}
	b.size, b.attached = size, true
	return nil
}

// DetachBuffer waits until all buffered messages have been sent, detaches the buffer, and returns
// its size.
func DetachBuffer(c *Comm) (size int, err error) {
	b := &c.process.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.attached {
		return 0, c.Failf(ErrBuffer, "no buffer is attached")
	}
	for _, r := range b.requests {
		if _, err := c.engine.Wait(r); err != nil {
			return 0, c.wrap(err)
		}
	}
	size = b.size
	b.size, b.used, b.attached = 0, 0, false
	b.requests, b.spaces = nil, nil
	return size, nil
}

// BufferInUse reports whether the attached buffer contains messages.
func (p *Process) BufferInUse() bool {
	p.buffer.mu.Lock()
	defer p.buffer.mu.Unlock()
	return len(p.buffer.requests) > 0
}

// reserve checks that there is space for one message of c. The caller holds b.mu.
func (b *sendBuffer) reserve(c *Comm, space int) error {
	if b.used+space > b.size && len(b.requests) > 0 {
		if err := b.reclaim(c.engine); err != nil {
			return c.wrap(err)
		}
	}
	if b.used+space > b.size {
		return c.Failf(ErrBuffer, "the message needs %d bytes, %d of %d attached bytes are free", space, b.size-b.used, b.size)
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

// Bsend sends a copy of b in buffered mode, and so never waits.
func Bsend(c *Comm, b []byte, dest, tag int) error {
	if err := c.CheckDest(dest, tag); err != nil {
		return err
	}
	_, err := startBuffered(c, slices.Clone(b), dest, tag)
	return c.wrap(err)
}

// Ibsend is the nonblocking form of Bsend. It takes payload, which the caller must not use
// afterwards. Its request is complete at once.
func Ibsend(c *Comm, call string, payload []byte, dest, tag int) (*Request, error) {
	if err := c.CheckDest(dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, description: describeSend(c, call, payload, dest, tag), null: dest == ProcNull}
	return r.begun(startBuffered(c, payload, dest, tag))
}

// startBuffered starts a buffered-mode send of payload, which the caller must not use afterwards,
// and returns a completed request.
func startBuffered(c *Comm, payload []byte, dest, tag int) (*engine.Request, error) {
	if dest == ProcNull {
		return startNothing(c), nil
	}
	b, space := &c.process.buffer, len(payload)+BsendOverhead
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.reserve(c, space); err != nil {
		return nil, err
	}
	r, err := startSend(c, engineapi.Standard, payload, dest, tag)
	if err != nil {
		return nil, err
	}
	b.used += space
	b.requests, b.spaces = append(b.requests, r), append(b.spaces, space)
	return startNothing(c), nil
}
