package core

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// SendInit returns an inactive request that, at every Start, sends the current contents of b to dest
// with tag. b belongs to the request while the request is active.
func SendInit(c *Comm, call string, mode engineapi.Mode, b []byte, dest, tag int) (*Request, error) {
	if err := c.CheckDest(dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, description: describeSend(c, call, b, dest, tag), null: dest == ProcNull}
	r.start = func() (*engine.Request, error) { return startSend(c, mode, b, dest, tag) }
	return r, nil
}

// BsendInit is SendInit in buffered mode.
func BsendInit(c *Comm, call string, b []byte, dest, tag int) (*Request, error) {
	if err := c.CheckDest(dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, null: dest == ProcNull}
	r.start = func() (*engine.Request, error) { return startBuffered(c, slices.Clone(b), dest, tag) }
	return r, nil
}

// SendInitBuffer is SendInit in standard mode of items of a datatype.
func SendInitBuffer(c *Comm, call string, b Buffer, dest, tag int) (*Request, error) {
	if run, ok := b.Run(); ok {
		return SendInit(c, call, engineapi.Standard, run, dest, tag)
	}
	if err := c.CheckDest(dest, tag); err != nil {
		return nil, err
	}
	packed := make([]byte, 0, b.Size())
	r := &Request{comm: c, call: call, null: dest == ProcNull}
	r.start = func() (*engine.Request, error) {
		packed = b.Append(packed[:0])
		return startSend(c, engineapi.Standard, packed, dest, tag)
	}
	return r, nil
}

// RecvInit returns an inactive request that, at every Start, receives into b. source and tag may be
// wildcards.
func RecvInit(c *Comm, call string, b []byte, source, tag int) (*Request, error) {
	return recvInit(c, call, b, nil, source, tag)
}

// RecvInitBuffer is RecvInit into items of a datatype.
func RecvInitBuffer(c *Comm, call string, b Buffer, source, tag int) (*Request, error) {
	target, unpack := b.Target()
	return recvInit(c, call, target, unpack, source, tag)
}

func recvInit(c *Comm, call string, b []byte, unpack *Unpacking, source, tag int) (*Request, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, call: call, description: describeRecv(c, call, b, source, tag), receive: true, null: source == ProcNull, unpack: unpack}
	r.start = func() (*engine.Request, error) {
		unpack.Restart()
		return startRecv(c, b, source, tag)
	}
	return r, nil
}

// Start starts the operation of a persistent request, which must not be active.
func (r *Request) Start() error {
	if r == nil || r.start == nil {
		return Failf(ErrRequest, "the request is not persistent")
	}
	c := r.comm
	if err := c.Check(); err != nil {
		return err
	}
	switch {
	case r.retired:
		return c.Failf(ErrRequest, "the request of %s was freed", r.call)
	case r.active():
		return c.Failf(ErrRequest, "the request of %s is active: wait for it first", r.call)
	}
	_, err := r.begun(r.start())
	return err
}
