package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Typed is items of a datatype in a slice: what MPI's functions take as
// address, count and datatype. Datatype.At makes one.
type Typed struct {
	of     *layout.Layout
	memory []byte
	origin int // byte of memory
	count  int
	err    *Error
}

// Size returns the bytes of data in x, and so of its message.
func (x Typed) Size() int {
	if x.err != nil || x.of == nil {
		return 0
	}
	return x.of.Size() * x.count
}

// usable returns why op cannot use x, or nil.
func (x Typed) usable(op string) error {
	if x.err == nil && x.of != nil {
		return nil
	}
	if x.err == nil {
		return failf(ErrType, op, "the zero Typed is none: make one with Datatype.At")
	}
	return &Error{Class: x.err.Class, Op: op, Rank: Undefined, Detail: x.err.Op, Err: x.err.Err}
}

// fault returns the error of a datatype, or of a Typed, that op has made.
func fault(class Class, op string, err error) *Error {
	return &Error{Class: class, Op: op, Rank: Undefined, Err: err}
}

// check is usable for a call on c.
func (x Typed) check(c *Comm, op string) error {
	err := x.usable(op)
	if err == nil {
		return nil
	}
	return c.handle(err.(*Error))
}

// run returns the bytes of x when they are one run of memory.
func (x Typed) run() (b []byte, ok bool) {
	offset, n, ok := x.of.Run(x.count)
	if !ok || n == 0 {
		return nil, ok
	}
	from := x.origin + offset
	return x.memory[from : from+n : from+n], true
}

// message returns the bytes of x for sending: where they are, or packed.
func (x Typed) message() []byte {
	if b, ok := x.run(); ok {
		return b
	}
	return x.of.Append(nil, x.memory, x.origin, x.count)
}

// take puts a message into x, as far as there is one.
func (x Typed) take(message []byte) {
	x.of.Unpack(x.memory, x.origin, x.count, message)
}

// SendTyped is Send for items of a datatype.
func SendTyped(c *Comm, x Typed, dest, tag int) error {
	if err := x.check(c, "SendTyped"); err != nil {
		return err
	}
	return Send(c, x.message(), dest, tag)
}

// RecvTyped is Recv for items of a datatype. A shorter message fills the first
// of them; Datatype.Count and Datatype.Elements say how many.
func RecvTyped(c *Comm, x Typed, source, tag int) (Status, error) {
	if err := x.check(c, "RecvTyped"); err != nil {
		return Status{}, err
	}
	r, err := IrecvTyped(c, x, source, tag)
	if err != nil {
		return Status{}, err
	}
	return r.Wait()
}

// IsendTyped is Isend for items of a datatype.
func IsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	if err := x.check(c, "IsendTyped"); err != nil {
		return nil, err
	}
	return Isend(c, x.message(), dest, tag)
}

// IrecvTyped is Irecv for items of a datatype.
func IrecvTyped(c *Comm, x Typed, source, tag int) (*Request, error) {
	if err := x.check(c, "IrecvTyped"); err != nil {
		return nil, err
	}
	if b, ok := x.run(); ok {
		return Irecv(c, b, source, tag)
	}
	packed := make([]byte, x.Size())
	r, err := Irecv(c, packed, source, tag)
	if err == nil {
		r.unpack = &unpacking{packed: packed, into: x}
	}
	return r, err
}

// An unpacking is what is left to do for a receive when its message is there.
type unpacking struct {
	packed []byte
	into   Typed
}
