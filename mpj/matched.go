package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// A Message is a message that Mprobe or Improbe has matched. Only one call of Mrecv or Imrecv can
// receive it.
type Message core.Message

// Mprobe waits for a message that a Recv with the same source and tag would receive, and returns it
// with its status. No other receive can match the message afterwards. Goroutines that share a
// communicator can therefore get the size of a message and then receive exactly that message.
func Mprobe(c *Comm, source, tag int) (*Message, Status, error) {
	m, s, err := core.Mprobe(c.core(), source, tag)
	return (*Message)(m), Status(s), errorOf("Mprobe", err)
}

// Improbe is the nonblocking form of Mprobe: ok reports whether such a message was available.
func Improbe(c *Comm, source, tag int) (m *Message, s Status, ok bool, err error) {
	matched, found, ok, err := core.Improbe(c.core(), source, tag)
	return (*Message)(matched), Status(found), ok, errorOf("Improbe", err)
}

// Mrecv receives m into buf and waits for it.
func Mrecv[T Element](m *Message, buf []T) (Status, error) {
	return outcomeOf(m.receive("Mrecv", bytesOf(buf)))
}

// Imrecv is the nonblocking form of Mrecv. buf belongs to the request until the request is
// complete.
func Imrecv[T Element](m *Message, buf []T) (*Request, error) {
	return m.receive("Imrecv", bytesOf(buf))
}

// MrecvTyped is Mrecv for items of a datatype.
func MrecvTyped(m *Message, x Typed) (Status, error) {
	return outcomeOf(m.receiveTyped("MrecvTyped", x))
}

// ImrecvTyped is Imrecv for items of a datatype. The data is in place after Wait or Test has
// reported the request complete.
func ImrecvTyped(m *Message, x Typed) (*Request, error) {
	return m.receiveTyped("ImrecvTyped", x)
}

// outcomeOf waits for r, unless it could not be started, and returns its outcome.
func outcomeOf(r *Request, err error) (Status, error) {
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

func (m *Message) receive(op string, b []byte) (*Request, error) {
	r, err := (*core.Message)(m).Imrecv(op, b)
	return (*Request)(r), errorOf(op, err)
}

func (m *Message) receiveTyped(op string, x Typed) (*Request, error) {
	if m != nil {
		if err := x.check(fromBase((*core.Message)(m).Comm()), op); err != nil {
			return nil, err
		}
	}
	r, err := (*core.Message)(m).ImrecvBuffer(op, x.buffer)
	return (*Request)(r), errorOf(op, err)
}
