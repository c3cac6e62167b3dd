package channel

import (
	"context"

	"github.com/p2pmpi/p2pmpi/internal/view"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A Sender is the writing end of a channel. Frames arrive whole and in the order of the calls. Only
// one goroutine at a time may use it, except that another one may call Close, which ends a blocked
// Send.
type Sender interface {
	// Send writes the frames, and returns when their payloads may be reused. It blocks while the
	// receiver is behind.
	Send(frames ...frame.Frame) error
	// Broken is closed when the receiver or the connection to it is gone. It tells an idle sender
	// that frames it has sent may not have arrived.
	Broken() <-chan struct{}
	// Limits returns the message lengths up to which the engine sends at once.
	Limits() Limits
	// Close tells the receiver that no more frames follow.
	Close() error
}

// A Receiver is the reading end of a channel. Only one goroutine at a time may use it, except that
// another one may call Close, which ends a blocked Receive.
type Receiver interface {
	// Receive returns the next frame. alloc chooses the buffer for its payload: it gets the header
	// and returns Size bytes. The error is io.EOF after the sender closed between two frames.
	Receive(alloc func(frame.Header) []byte) (frame.Frame, error)
	Close() error
}

// An Opener opens channels from this process to others of its job.
type Opener interface {
	Open(ctx context.Context, to view.Process) (Sender, error)
}
