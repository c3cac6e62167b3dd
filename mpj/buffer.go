package mpj

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// BsendOverhead is the space, in bytes, that a buffered-mode message takes in the attached buffer
// in addition to its payload. It bounds the number of empty messages in transit.
const BsendOverhead = 64

// BufferAttach provides size bytes for the messages that this process sends in buffered mode. Each
// message takes its length plus BsendOverhead.
func (w *World) BufferAttach(size int) error {
	return errorOf("BufferAttach", core.AttachBuffer(&w.base, size))
}

// BufferDetach waits until all buffered messages have been sent, detaches the buffer, and returns
// its size.
func (w *World) BufferDetach() (size int, err error) {
	size, err = core.DetachBuffer(&w.base)
	return size, errorOf("BufferDetach", err)
}

// Bsend is Send in buffered mode: it copies the message to the buffer that BufferAttach has
// provided, and so never waits. It returns ErrBuffer if the buffer has too little free space.
func Bsend[T Element](c *Comm, buf []T, dest, tag int) error {
	return errorOf("Bsend", core.Bsend(c.core(), bytesOf(buf), dest, tag))
}

// BsendTyped is Bsend for items of a datatype.
func BsendTyped(c *Comm, x Typed, dest, tag int) error {
	_, err := outcomeOf(ibsendTyped(c, "BsendTyped", x, dest, tag))
	return err
}

// Ibsend is the nonblocking form of Bsend. Its request is complete at once.
func Ibsend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.Ibsend(c.core(), "Ibsend", slices.Clone(bytesOf(buf)), dest, tag)
	return (*Request)(r), errorOf("Ibsend", err)
}

// IbsendTyped is the nonblocking form of BsendTyped.
func IbsendTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	return ibsendTyped(c, "IbsendTyped", x, dest, tag)
}

func ibsendTyped(c *Comm, op string, x Typed, dest, tag int) (*Request, error) {
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	r, err := core.Ibsend(&c.base, op, x.buffer.Append(nil), dest, tag)
	return (*Request)(r), errorOf(op, err)
}
