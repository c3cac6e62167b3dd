package core

import (
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// A Buffer is a number of items of a datatype in memory. It represents the address, count and
// datatype arguments of MPI's functions.
type Buffer struct {
	Memory []byte
	Type   *layout.Layout
	Origin int // index of the origin in Memory
	Count  int // number of items
}

// Check returns an error if an item would lie outside the memory of b.
func (b Buffer) Check() error {
	if err := b.Type.Check(b.Origin, b.Count, len(b.Memory)); err != nil {
		return Wrap(ErrBuffer, err)
	}
	return nil
}

// Size returns the bytes of data in b, which is the size of its message.
func (b Buffer) Size() int { return b.Type.Size() * b.Count }

// Run returns the bytes of b if they are contiguous in memory.
func (b Buffer) Run() (run []byte, ok bool) {
	offset, n, ok := b.Type.Run(b.Count)
	if !ok || n == 0 {
		return nil, ok
	}
	from := b.Origin + offset
	return b.Memory[from : from+n : from+n], true
}

// Append packs b, appends the result to dst, and returns the extended slice.
func (b Buffer) Append(dst []byte) []byte {
	return b.Type.Append(dst, b.Memory, b.Origin, b.Count)
}

// Unpack stores a message, which may be shorter than b, in b.
func (b Buffer) Unpack(message []byte) { b.Type.Unpack(b.Memory, b.Origin, b.Count, message) }

// Message returns the bytes of b for sending: in place if they are contiguous, and otherwise packed
// in a Scratch.
func (b Buffer) Message() ([]byte, *Scratch) {
	if run, ok := b.Run(); ok {
		return run, nil
	}
	s := scratches.Get().(*Scratch)
	s.bytes = b.Append(s.bytes[:0])
	return s.bytes, s
}

// Room returns the memory for receiving b: in place if b is contiguous, and otherwise a Scratch for
// packed data.
func (b Buffer) Room() ([]byte, *Scratch) {
	if run, ok := b.Run(); ok {
		return run, nil
	}
	return TakeScratch(b.Size())
}

// A Scratch contains the packed bytes of a blocking call.
type Scratch struct{ bytes []byte }

var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// TakeScratch returns n bytes, whose values are undefined, in a Scratch.
func TakeScratch(n int) ([]byte, *Scratch) {
	s := scratches.Get().(*Scratch)
	s.bytes = slices.Grow(s.bytes[:0], n)[:n]
	return s.bytes, s
}

// maxScratch is the capacity, in bytes, of the largest Scratch kept for later calls.
const maxScratch = 1 << 20

// Put makes s available for later calls. s is nil if the data needed no packing.
func (s *Scratch) Put() {
	if s != nil && cap(s.bytes) <= maxScratch {
		scratches.Put(s)
	}
}

// Target returns the memory for a receive into b that does not block, and the unpacking to do
// afterwards, or nil if b is contiguous.
func (b Buffer) Target() ([]byte, *Unpacking) {
	if run, ok := b.Run(); ok {
		return run, nil
	}
	packed := make([]byte, b.Size())
	return packed, &Unpacking{packed: packed, into: b}
}

// An Unpacking unpacks a received message after its receive has completed.
type Unpacking struct {
	packed []byte
	into   Buffer
	done   bool
}

// Finish unpacks the first size bytes of the message, once. u may be nil.
func (u *Unpacking) Finish(size int) {
	if u != nil && !u.done {
		u.into.Unpack(u.packed[:size])
		u.done = true
	}
}

// Restart prepares u for the next message of a persistent receive. u may be nil.
func (u *Unpacking) Restart() {
	if u != nil {
		u.done = false
	}
}
