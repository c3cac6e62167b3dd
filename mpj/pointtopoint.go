package mpj

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// The functions here are generic over slices of elements, and share the byte-based functions below.
// The functions for datatypes are in typed.go.

// Send sends buf to rank dest of c, in MPI's standard mode: it returns when buf may be reused, which
// is at once for a short message. A long message may have to wait for its receive. Two ranks that
// send long messages to each other before they receive may therefore deadlock. Sendrecv and Isend
// avoid this.
func Send[T Element](c *Comm, buf []T, dest, tag int) error {
	return c.sendBytes("Send", engineapi.Standard, bytesOf(buf), dest, tag)
}

// Ssend is Send in synchronous mode: it returns when a receive has matched the message.
func Ssend[T Element](c *Comm, buf []T, dest, tag int) error {
	return c.sendBytes("Ssend", engineapi.Synchronous, bytesOf(buf), dest, tag)
}

// Rsend is Send in ready mode. In MPI, ready mode requires that the receive is already posted; this
// implementation does not require this.
func Rsend[T Element](c *Comm, buf []T, dest, tag int) error {
	return c.sendBytes("Rsend", engineapi.Ready, bytesOf(buf), dest, tag)
}

// Recv waits for a message from rank source (or AnySource) with tag (or AnyTag) and receives it into
// buf. The message may be shorter than buf. If the message is longer than buf, it is lost, and Recv
// returns ErrTruncate.
func Recv[T Element](c *Comm, buf []T, source, tag int) (Status, error) {
	return c.recvBytes("Recv", bytesOf(buf), source, tag)
}

// Sendrecv sends send to dest and receives from source at the same time, so that ranks can exchange
// messages in a ring. The two buffers must not overlap.
func Sendrecv[S, R Element](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	return c.exchangeBytes("Sendrecv", bytesOf(send), dest, sendTag, bytesOf(recv), source, recvTag)
}

// SendrecvReplace is Sendrecv with one buffer: the received message replaces the sent one.
func SendrecvReplace[T Element](c *Comm, buf []T, dest, sendTag, source, recvTag int) (Status, error) {
	return c.exchangeBytes("SendrecvReplace", slices.Clone(bytesOf(buf)), dest, sendTag, bytesOf(buf), source, recvTag)
}

// Isend is the nonblocking form of Send. buf belongs to the request, and must not be changed, until
// the request is complete.
func Isend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isendBytes("Isend", engineapi.Standard, bytesOf(buf), dest, tag)
}

// Issend is Isend in synchronous mode.
func Issend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isendBytes("Issend", engineapi.Synchronous, bytesOf(buf), dest, tag)
}

// Irsend is Isend in ready mode.
func Irsend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isendBytes("Irsend", engineapi.Ready, bytesOf(buf), dest, tag)
}

// Irecv is the nonblocking form of Recv. buf belongs to the request until the request is complete.
func Irecv[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	return c.irecvBytes("Irecv", bytesOf(buf), source, tag)
}

// Probe waits for a message that a Recv with the same source and tag would receive, and returns its
// status without receiving it. With several goroutines, another goroutine may then receive the
// message; Mprobe avoids this.
func Probe(c *Comm, source, tag int) (Status, error) {
	if err := c.checkSource("Probe", source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return nothing, nil
	}
	s, err := c.engine().Probe(c.context(messageSlot), c.worldRank(source), int32(tag))
	return c.statusOf(s), c.wrap("Probe", err)
}

// Iprobe is the nonblocking form of Probe: ok reports whether such a message has arrived.
func Iprobe(c *Comm, source, tag int) (s Status, ok bool, err error) {
	if err := c.checkSource("Iprobe", source, tag); err != nil {
		return Status{}, false, err
	}
	if source == ProcNull {
		return nothing, true, nil
	}
	found, ok, err := c.engine().Iprobe(c.context(messageSlot), c.worldRank(source), int32(tag))
	return c.statusOf(found), ok, c.wrap("Iprobe", err)
}

func (c *Comm) sendBytes(op string, mode engineapi.Mode, b []byte, dest, tag int) error {
	if !c.plain(dest, tag) {
		if err := c.checkDest(op, dest, tag); err != nil || dest == ProcNull {
			return err
		}
	}
	return c.wrap(op, c.engine().Send(c.context(messageSlot), c.worldRank(dest), int32(tag), b, mode))
}

func (c *Comm) recvBytes(op string, b []byte, source, tag int) (Status, error) {
	if !c.plain(source, tag) {
		if err := c.checkSource(op, source, tag); err != nil {
			return Status{}, err
		}
		if source == ProcNull {
			return nothing, nil
		}
	}
	s, err := c.engine().Recv(c.context(messageSlot), c.worldRank(source), int32(tag), b)
	return c.statusOf(s), c.wrap(op, err)
}

func (c *Comm) exchangeBytes(op string, send []byte, dest, sendTag int, recv []byte, source, recvTag int) (Status, error) {
	if err := c.checkDest(op, dest, sendTag); err != nil {
		return Status{}, err
	}
	if err := c.checkSource(op, source, recvTag); err != nil {
		return Status{}, err
	}
	switch {
	case dest == ProcNull:
		return c.recvBytes(op, recv, source, recvTag)
	case source == ProcNull:
		return nothing, c.sendBytes(op, engineapi.Standard, send, dest, sendTag)
	}
	s, err := c.engine().Sendrecv(c.context(messageSlot), c.worldRank(dest), int32(sendTag), send, c.worldRank(source), int32(recvTag), recv)
	return c.statusOf(s), c.wrap(op, err)
}

func (c *Comm) isendBytes(op string, mode engineapi.Mode, b []byte, dest, tag int) (*Request, error) {
	if err := c.checkDest(op, dest, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, op: op, description: c.describeSend(op, b, dest, tag), null: dest == ProcNull}
	return r.begun(c.startSend(mode, b, dest, tag))
}

func (c *Comm) irecvBytes(op string, b []byte, source, tag int) (*Request, error) {
	if err := c.checkSource(op, source, tag); err != nil {
		return nil, err
	}
	r := &Request{comm: c, op: op, description: c.describeRecv(op, b, source, tag), receive: true, null: source == ProcNull}
	return r.begun(c.startRecv(b, source, tag))
}

// startSend starts a send whose arguments have been checked.
func (c *Comm) startSend(mode engineapi.Mode, b []byte, dest, tag int) (*engine.Request, error) {
	if dest == ProcNull {
		return c.startNothing(), nil
	}
	return c.engine().Isend(c.context(messageSlot), c.worldRank(dest), int32(tag), b, mode)
}

// startRecv starts a receive whose arguments have been checked.
func (c *Comm) startRecv(b []byte, source, tag int) (*engine.Request, error) {
	if source == ProcNull {
		return c.startNothing(), nil
	}
	return c.engine().Irecv(c.context(messageSlot), c.worldRank(source), int32(tag), b)
}

// startNothing returns a completed request for a send to or a receive from ProcNull.
func (c *Comm) startNothing() *engine.Request {
	r := c.engine().Begin()
	c.engine().Finish(r, engineapi.Status{}, nil)
	return r
}
