package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"

// A Message is a message that Mprobe or Improbe has matched. Only one call of Mrecv or Imrecv can
// receive it.
type Message struct {
	comm    *Comm
	matched *engine.Matched // nil for ProcNull, and after the message was received
	null    bool
}

// Mprobe waits for a message that a Recv with the same source and tag would receive, and returns it
// with its status. No other receive can match the message afterwards. Goroutines that share a
// communicator can therefore get the size of a message and then receive exactly that message.
func Mprobe(c *Comm, source, tag int) (*Message, Status, error) {
	if err := c.checkSource("Mprobe", source, tag); err != nil {
		return nil, Status{}, err
	}
	if source == ProcNull {
		return &Message{comm: c, null: true}, nothing, nil
	}
	m, s, err := c.engine().Mprobe(c.context(messageSlot), c.worldRank(source), int32(tag))
	if err != nil {
		return nil, Status{}, c.wrap("Mprobe", err)
	}
	c.world.active.Add(1)
	return &Message{comm: c, matched: m}, c.statusOf(s), nil
}

// Improbe is the nonblocking form of Mprobe: ok reports whether such a message was available.
func Improbe(c *Comm, source, tag int) (m *Message, s Status, ok bool, err error) {
	if err := c.checkSource("Improbe", source, tag); err != nil {
		return nil, Status{}, false, err
	}
	if source == ProcNull {
		return &Message{comm: c, null: true}, nothing, true, nil
	}
	matched, found, ok, err := c.engine().Improbe(c.context(messageSlot), c.worldRank(source), int32(tag))
	if err != nil || !ok {
		return nil, Status{}, false, c.wrap("Improbe", err)
	}
	c.world.active.Add(1)
	return &Message{comm: c, matched: matched}, c.statusOf(found), true, nil
}

// Mrecv receives m into buf and waits for it.
func Mrecv[T Element](m *Message, buf []T) (Status, error) {
	r, err := m.receive("Mrecv", bytesOf(buf))
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

// Imrecv is the nonblocking form of Mrecv. buf belongs to the request until the request is
// complete.
func Imrecv[T Element](m *Message, buf []T) (*Request, error) {
	return m.receive("Imrecv", bytesOf(buf))
}

// MrecvTyped is Mrecv for items of a datatype.
func MrecvTyped(m *Message, x Typed) (Status, error) {
	r, err := m.receiveTyped("MrecvTyped", x)
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

// ImrecvTyped is Imrecv for items of a datatype. The data is in place after Wait or Test has
// reported the request complete.
func ImrecvTyped(m *Message, x Typed) (*Request, error) {
	return m.receiveTyped("ImrecvTyped", x)
}

func (m *Message) receiveTyped(op string, x Typed) (*Request, error) {
	if m == nil {
		return nil, failf(ErrRequest, op, "there is no message")
	}
	if err := x.check(m.comm, op); err != nil {
		return nil, err
	}
	b, unpack := x.buffer.Target()
	r, err := m.receive(op, b)
	if err == nil {
		r.unpack = unpack
	}
	return r, err
}

func (m *Message) receive(op string, b []byte) (*Request, error) {
	if m == nil {
		return nil, failf(ErrRequest, op, "there is no message")
	}
	r := &Request{comm: m.comm, op: op, receive: true, null: m.null}
	if m.null {
		return r.begun(m.comm.startNothing(), nil)
	}
	if m.matched == nil {
		return nil, m.comm.failf(ErrRequest, op, "the message has already been received")
	}
	matched := m.matched
	m.matched = nil
	m.comm.world.active.Add(-1)
	return r.begun(m.comm.engine().Imrecv(matched, b))
}
