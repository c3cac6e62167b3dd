package mpj

import (
	"errors"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A persistent is the state of a persistent request. Start calls start.
type persistent struct {
	start func() (*engine.Request, error)
	freed bool
}

// SendInit returns an inactive request that, at every Start, sends the current contents of buf to
// dest with tag. buf belongs to the request while the request is active.
func SendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.sendInit("SendInit", engineapi.Standard, bytesOf(buf), dest, tag)
}

// SsendInit is SendInit in synchronous mode.
func SsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.sendInit("SsendInit", engineapi.Synchronous, bytesOf(buf), dest, tag)
}

// RsendInit is SendInit in ready mode.
func RsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.sendInit("RsendInit", engineapi.Ready, bytesOf(buf), dest, tag)
}

// BsendInit is SendInit in buffered mode.
func BsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	const op = "BsendInit"
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	return c.persistent(op, &Request{null: dest == ProcNull}, func() (*engine.Request, error) {
		return c.startBuffered(op, slices.Clone(bytesOf(buf)), dest, tag)
	}), nil
}

// RecvInit returns an inactive request that, at every Start, receives into buf. source and tag may
// be wildcards.
func RecvInit[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	return c.recvInit("RecvInit", bytesOf(buf), nil, source, tag)
}

// SendInitTyped is SendInit for items of a datatype.
func SendInitTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	const op = "SendInitTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	if b, ok := x.buffer.Run(); ok {
		return c.sendInit(op, engineapi.Standard, b, dest, tag)
	}
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	packed := make([]byte, 0, x.Size())
	return c.persistent(op, &Request{null: dest == ProcNull}, func() (*engine.Request, error) {
		packed = x.buffer.Append(packed[:0])
		return c.startSend(engineapi.Standard, packed, dest, tag)
	}), nil
}

// RecvInitTyped is RecvInit for items of a datatype.
func RecvInitTyped(c *Comm, x Typed, source, tag int) (*Request, error) {
	const op = "RecvInitTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	b, unpack := x.buffer.Target()
	return c.recvInit(op, b, unpack, source, tag)
}

func (c *Comm) sendInit(op string, mode engineapi.Mode, b []byte, dest, tag int) (*Request, error) {
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	return c.persistent(op, &Request{null: dest == ProcNull}, func() (*engine.Request, error) {
		return c.startSend(mode, b, dest, tag)
	}).described(c.describeSend(op, b, dest, tag)), nil
}

func (c *Comm) recvInit(op string, b []byte, unpack *core.Unpacking, source, tag int) (*Request, error) {
	if err := c.checkSource(op, source, tag); err != nil {
		return nil, err
	}
	r := &Request{receive: true, null: source == ProcNull, unpack: unpack}
	return c.persistent(op, r, func() (*engine.Request, error) {
		unpack.Restart()
		return c.startRecv(b, source, tag)
	}).described(c.describeRecv(op, b, source, tag)), nil
}

// persistent makes r a persistent request of c.
func (c *Comm) persistent(op string, r *Request, start func() (*engine.Request, error)) *Request {
	r.comm, r.op, r.persists = c, op, &persistent{start: start}
	return r
}

// described sets the description of r, which is empty without checks.
func (r *Request) described(description string) *Request {
	r.description = description
	return r
}

// Start starts the operation of a persistent request, which must not be active.
func (r *Request) Start() error {
	if r == nil || r.persists == nil {
		return failf(ErrRequest, "Start", "the request is not persistent")
	}
	c := r.comm
	if err := c.check("Start"); err != nil {
		return err
	}
	switch {
	case r.persists.freed:
		return c.failf(ErrRequest, "Start", "the request of %s was freed", r.op)
	case r.active():
		return c.failf(ErrRequest, "Start", "the request of %s is active: wait for it first", r.op)
	}
	_, err := r.begun(r.persists.start())
	return err
}

// Startall starts all requests in order, and returns their errors joined.
func Startall(requests ...*Request) error {
	var failed error
	for _, r := range requests {
		failed = errors.Join(failed, r.Start())
	}
	return failed
}

// Free releases a persistent request, which then cannot be started again. If the request is active,
// its operation still completes. Other requests need no Free, because unused requests are
// garbage-collected. With P2PMPI_CHECK, Free states that the program will not wait for a request.
func (r *Request) Free() {
	if r == nil {
		return
	}
	if r.persists != nil {
		r.persists.freed = true
	}
	if r.active() && !r.freed && !r.collective {
		r.freed = true
		r.comm.world.active.Add(-1)
	}
	r.settle()
}
