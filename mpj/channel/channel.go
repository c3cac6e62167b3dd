package channel

import (
	"context"

	"github.com/p2pmpi/p2pmpi/internal/view"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A Sender is the writing end of a channel. Frames arrive whole and in the order of the calls. Only
// one goroutine at a time may use a Sender, except that another goroutine may call Close, which ends
// a blocked Send.
type Sender interface {
	// Send writes the frames, and returns when their payloads may be reused. It blocks while the
	// receiver is behind.
	Send(frames ...frame.Frame) error
	// Broken is closed when the receiver has closed or the connection is lost. It tells an idle
	// sender that frames may not have arrived.
	Broken() <-chan struct{}
	// Limits returns the message lengths up to which the engine sends at once.
	Limits() Limits
	// Close tells the receiver that no more frames follow.
	Close() error
}

// A Receiver is the reading end of a channel. Only one goroutine at a time may use a Receiver,
// except that another goroutine may call Close, which ends a blocked Receive.
type Receiver interface {
	// Receive returns the next frame. alloc returns the buffer for its payload: its argument is the
	// header, and its result has Size bytes. The error is io.EOF after the sender closed between two
	// frames.
	Receive(alloc func(frame.Header) []byte) (frame.Frame, error)
	Close() error
}

// An Opener opens channels from this process to others of its job.
type Opener interface {
	Open(ctx context.Context, to view.Process) (Sender, error)
}
