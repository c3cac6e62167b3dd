package mpj

import (
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A Typed is a number of items of a datatype in a slice. It replaces the address, count and datatype
// arguments of MPI's functions. Datatype.At returns a Typed.
type Typed struct {
	buffer core.Buffer
	err    *Error
}

// Size returns the bytes of data in x, which is the size of its message.
func (x Typed) Size() int {
	if x.err != nil || x.buffer.Type == nil {
		return 0
	}
	return x.buffer.Size()
}

// usable returns the reason why op cannot use x, or nil.
func (x Typed) usable(op string) *Error {
	if x.err == nil && x.buffer.Type != nil {
		return nil
	}
	if x.err == nil {
		return fault(op, errors.New("zero Typed: create one with Datatype.At"))
	}
	return &Error{Class: x.err.Class, Op: op, Rank: Undefined, Detail: x.err.Op, Err: x.err.Err}
}

// check returns an error if op cannot use c or x.
func (x Typed) check(c *Comm, op string) error {
	if err := c.check(op); err != nil {
		return err
	}
	if err := x.usable(op); err != nil {
		return c.handle(err)
	}
	return nil
}

// SendTyped is Send for items of a datatype.
func SendTyped(c *Comm, x Typed, dest, tag int) error {
	return sendTyped(c, "SendTyped", engineapi.Standard, x, dest, tag)
}

// SsendTyped is Ssend for items of a datatype.
func SsendTyped(c *Comm, x Typed, dest, tag int) error {
	return sendTyped(c, "SsendTyped", engineapi.Synchronous, x, dest, tag)
}

// RsendTyped is Rsend for items of a datatype.
func RsendTyped(c *Comm, x Typed, dest, tag int) error {
	return sendTyped(c, "RsendTyped", engineapi.Ready, x, dest, tag)
}

func sendTyped(c *Comm, op string, mode engineapi.Mode, x Typed, dest, tag int) error {
	if err := x.check(c, op); err != nil {
		return err
	}
	return errorOf(op, core.SendBuffer(&c.base, mode, x.buffer, dest, tag))
}

// RecvTyped is Recv for items of a datatype. A shorter message fills the first items; Datatype.Count
// and Datatype.Elements return the number of received items and elements.
func RecvTyped(c *Comm, x Typed, source, tag int) (Status, error) {
	const op = "RecvTyped"
	if err := x.check(c, op); err != nil {
		return Status{}, err
	}
	s, err := core.RecvBuffer(&c.base, x.buffer, source, tag)
	return Status(s), errorOf(op, err)
}

// SendrecvTyped is Sendrecv for items of datatypes. The data to send and the data to receive must
// not overlap.
func SendrecvTyped(c *Comm, send Typed, dest, sendTag int, recv Typed, source, recvTag int) (Status, error) {
	const op = "SendrecvTyped"
	if err := send.check(c, op); err != nil {
		return Status{}, err
	}
	if err := recv.check(c, op); err != nil {
		return Status{}, err
	}
	s, err := core.SendrecvBuffer(&c.base, send.buffer, dest, sendTag, recv.buffer, source, recvTag)
	return Status(s), errorOf(op, err)
}

// SendrecvReplaceTyped is SendrecvReplace for items of a datatype.
func SendrecvReplaceTyped(c *Comm, x Typed, dest, sendTag, source, recvTag int) (Status, error) {
	const op = "SendrecvReplaceTyped"
	if err := x.check(c, op); err != nil {
		return Status{}, err
	}
	s, err := core.SendrecvReplaceBuffer(&c.base, x.buffer, dest, sendTag, source, recvTag)
	return Status(s), errorOf(op, err)
}

// IsendTyped is Isend for items of a datatype.
func IsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return isendTyped(c, "IsendTyped", engineapi.Standard, x, dest, tag)
}

// IssendTyped is Issend for items of a datatype.
func IssendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return isendTyped(c, "IssendTyped", engineapi.Synchronous, x, dest, tag)
}

// IrsendTyped is Irsend for items of a datatype.
func IrsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return isendTyped(c, "IrsendTyped", engineapi.Ready, x, dest, tag)
}

func isendTyped(c *Comm, op string, mode engineapi.Mode, x Typed, dest, tag int) (*Request, error) {
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	r, err := core.IsendBuffer(&c.base, op, mode, x.buffer, dest, tag)
	return (*Request)(r), errorOf(op, err)
}

// IrecvTyped is Irecv for items of a datatype. The data is in place after Wait or Test has reported
// the request complete.
func IrecvTyped(c *Comm, x Typed, source, tag int) (*Request, error) {
	const op = "IrecvTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	r, err := core.IrecvBuffer(&c.base, op, x.buffer, source, tag)
	return (*Request)(r), errorOf(op, err)
}
