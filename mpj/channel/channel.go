package channel

import (
	"context"

	"github.com/p2pmpi/p2pmpi/internal/view"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A Sender is the writing end of a channel. Frames arrive whole and in the
// order of the calls. One goroutine at a time may use it; Close may be called
// from another, and ends a blocked Send.
type Sender interface {
	// Send writes the frames, and returns when their payloads may be reused.
	// It blocks while the receiver is behind.
	Send(frames ...frame.Frame) error
	// Broken is closed when the receiver is gone, or the way to it. A sender
	// that has nothing to send learns so that what it sent may not have arrived.
	Broken() <-chan struct{}
	// Limits says which messages go at once, and which wait to be asked for.
	Limits() Limits
	// Close tells the receiver that no frame follows.
	Close() error
}

// A Receiver is the reading end of a channel. One goroutine at a time may use
// it; Close may be called from another, and ends a blocked Receive.
type Receiver interface {
	// Receive returns the next frame. alloc chooses where its payload goes: it
	// is given the header and returns Size bytes. The error is io.EOF after
	// the sender closed between two frames.
	Receive(alloc func(frame.Header) []byte) (frame.Frame, error)
	Close() error
}

// An Opener opens channels from this process to others of its job.
type Opener interface {
	Open(ctx context.Context, to view.Process) (Sender, error)
}
