package mpj

import (
	"errors"
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Typed is a number of items of a datatype in a slice. It replaces the address, count and datatype
// arguments of MPI's functions. Datatype.At returns a Typed.
type Typed struct {
	of     *layout.Layout
	memory []byte
	origin int // index of the origin in memory
	count  int
	err    *Error
}

// Size returns the bytes of data in x, which is the size of its message.
func (x Typed) Size() int {
	if x.err != nil || x.of == nil {
		return 0
	}
	return x.of.Size() * x.count
}

// usable returns the reason why op cannot use x, or nil.
func (x Typed) usable(op string) *Error {
	if x.err == nil && x.of != nil {
		return nil
	}
	if x.err == nil {
		return fault(ErrType, op, errors.New("zero Typed: create one with Datatype.At"))
	}
	return &Error{Class: x.err.Class, Op: op, Rank: Undefined, Detail: x.err.Op, Err: x.err.Err}
}

// fault returns the error of a datatype or Typed that op made.
func fault(class Class, op string, err error) *Error {
	return &Error{Class: class, Op: op, Rank: Undefined, Err: err}
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

// run returns the bytes of x if they are contiguous in memory.
func (x Typed) run() (b []byte, ok bool) {
	offset, n, ok := x.of.Run(x.count)
	if !ok || n == 0 {
		return nil, ok
	}
	from := x.origin + offset
	return x.memory[from : from+n : from+n], true
}

// message returns the bytes of x for sending: in place if they are contiguous, and otherwise packed
// in a scratch.
func (x Typed) message() ([]byte, *scratch) {
	if b, ok := x.run(); ok {
		return b, nil
	}
	p := scratches.Get().(*scratch)
	p.bytes = x.of.Append(p.bytes[:0], x.memory, x.origin, x.count)
	return p.bytes, p
}

// room returns the buffer for receiving x: in place if x is contiguous, and otherwise a scratch for
// packed data.
func (x Typed) room() ([]byte, *scratch) {
	if b, ok := x.run(); ok {
		return b, nil
	}
	p := scratches.Get().(*scratch)
	p.bytes = slices.Grow(p.bytes[:0], x.Size())[:x.Size()]
	return p.bytes, p
}

// A scratch contains the packed bytes of a blocking call.
type scratch struct{ bytes []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is the capacity, in bytes, of the largest scratch kept for later calls.
const maxScratch = 1 << 20

// put returns p to the pool. p is nil if the data needed no packing.
func (p *scratch) put() {
	if p != nil && cap(p.bytes) <= maxScratch {
		scratches.Put(p)
	}
}

// take unpacks a message, which may be shorter than x, into x.
func (x Typed) take(message []byte) {
	x.of.Unpack(x.memory, x.origin, x.count, message)
}

// SendTyped is Send for items of a datatype.
func SendTyped(c *Comm, x Typed, dest, tag int) error {
	return c.sendTyped("SendTyped", engineapi.Standard, x, dest, tag)
}

// SsendTyped is Ssend for items of a datatype.
func SsendTyped(c *Comm, x Typed, dest, tag int) error {
	return c.sendTyped("SsendTyped", engineapi.Synchronous, x, dest, tag)
}

// RsendTyped is Rsend for items of a datatype.
func RsendTyped(c *Comm, x Typed, dest, tag int) error {
	return c.sendTyped("RsendTyped", engineapi.Ready, x, dest, tag)
}

func (c *Comm) sendTyped(op string, mode engineapi.Mode, x Typed, dest, tag int) error {
	if err := x.check(c, op); err != nil {
		return err
	}
	b, packed := x.message()
	err := c.sendBytes(op, mode, b, dest, tag)
	if err == nil { // after an error the engine may still use the scratch
		packed.put()
	}
	return err
}

// RecvTyped is Recv for items of a datatype. A shorter message fills the first items; Datatype.Count
// and Datatype.Elements return the number of received items and elements.
func RecvTyped(c *Comm, x Typed, source, tag int) (Status, error) {
	const op = "RecvTyped"
	if err := x.check(c, op); err != nil {
		return Status{}, err
	}
	b, packed := x.room()
	s, err := c.recvBytes(op, b, source, tag)
	if packed != nil && err == nil {
		x.take(b[:s.Size])
		packed.put()
	}
	return s, err
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
	out, sent := send.message()
	in, packed := recv.room()
	s, err := c.exchangeBytes(op, out, dest, sendTag, in, source, recvTag)
	if packed != nil && err == nil {
		recv.take(in[:s.Size])
	}
	if err == nil {
		sent.put()
		packed.put()
	}
	return s, err
}

// SendrecvReplaceTyped is SendrecvReplace for items of a datatype.
func SendrecvReplaceTyped(c *Comm, x Typed, dest, sendTag, source, recvTag int) (Status, error) {
	const op = "SendrecvReplaceTyped"
	if err := x.check(c, op); err != nil {
		return Status{}, err
	}
	in, packed := x.room()
	s, err := c.exchangeBytes(op, x.packed(), dest, sendTag, in, source, recvTag)
	if err == nil {
		if packed != nil {
			x.take(in[:s.Size])
		}
		packed.put()
	}
	return s, err
}

// packed returns the message of x in newly allocated memory.
func (x Typed) packed() []byte {
	return x.of.Append(nil, x.memory, x.origin, x.count)
}

// IsendTyped is Isend for items of a datatype.
func IsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return c.isendTyped("IsendTyped", engineapi.Standard, x, dest, tag)
}

// IssendTyped is Issend for items of a datatype.
func IssendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return c.isendTyped("IssendTyped", engineapi.Synchronous, x, dest, tag)
}

// IrsendTyped is Irsend for items of a datatype.
func IrsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return c.isendTyped("IrsendTyped", engineapi.Ready, x, dest, tag)
}

func (c *Comm) isendTyped(op string, mode engineapi.Mode, x Typed, dest, tag int) (*Request, error) {
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	b, ok := x.run()
	if !ok {
		b = x.packed()
	}
	return c.isendBytes(op, mode, b, dest, tag)
}

// IrecvTyped is Irecv for items of a datatype. The data is in place after Wait or Test has reported
// the request complete.
func IrecvTyped(c *Comm, x Typed, source, tag int) (*Request, error) {
	const op = "IrecvTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	b, unpack := x.target()
	r, err := c.irecvBytes(op, b, source, tag)
	if err == nil {
		r.unpack = unpack
	}
	return r, err
}

// An unpacking unpacks a received message after its receive has completed.
type unpacking struct {
	packed []byte
	into   Typed
	done   bool
}

// finish unpacks the first size bytes of the message, once.
func (u *unpacking) finish(size int) {
	if u != nil && !u.done {
		u.into.take(u.packed[:size])
		u.done = true
	}
}

// target returns the buffer for receiving x, and the unpacking to do afterwards, or nil.
func (x Typed) target() ([]byte, *unpacking) {
	if b, ok := x.run(); ok {
		return b, nil
	}
	packed := make([]byte, x.Size())
	return packed, &unpacking{packed: packed, into: x}
}
