package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Transport moves the messages of an engine. It decides how a message travels, when a send ends,
// what a process sends again on a new channel, and the outcomes of calls that depend on timing. The
// engine's mutex is held at all calls, except those of Time and Close. Only Send, Take, Decide and
// Flush may release it meanwhile.
//
// A transport may also be a Checkpointer, a Canceller, a Counter or a Refuser.
type Transport interface {
	// TrySend sends a message if its send ends at once, and reports whether it did. The payload
	// remains the caller's.
	TrySend(context uint32, dest int, tag int32, payload []byte, mode Mode) (sent bool)
	// Send sends a message. When the send ends, r is done and payload may be reused.
	Send(r *Request, context uint32, dest int, tag int32, payload []byte, mode Mode)
	// Abandon ends, for its caller, a send that may never be received.
	Abandon(r *Request)
	// Post posts receive r in b, the mailbox of its context.
	Post(r *Request, b *Mailbox) error
	// Take takes for receive r the message that a receive from source with tag in b, the mailbox of
	// its context, would take now. It reports whether there is one.
	Take(r *Request, b *Mailbox, source int, tag int32) (found bool, err error)
	// Fetch gets the payload of m, which a probe has removed from its mailbox, for receive r.
	Fetch(r *Request, m message)
	// Drop drops m, which the program will never receive.
	Drop(m message)
	// Decide takes a point of context, and waits for its outcome, which is the choice of w. The
	// outcome is valid until w is used again.
	Decide(context uint32, w *Waiter) ([]uint64, error)
	// Time implements Engine.Wtime.
	Time() float64
	// Replicated reports whether other replicas take part in the decisions of this process.
	Replicated() bool

	// Incoming returns the handler of the frames of a new channel from a process. The channel cannot
	// break if it is a ring. memory is nil if this process cannot read the sender's memory.
	Incoming(from view.Process, ring bool, memory MemoryReader) Handler
	// Sent takes back the payload of a Parcel that has left its queue, and ends its send.
	Sent(p Parcel)
	// Written removes from the queue of o the frames that need not be sent again. The last n frames
	// have just been written to the channel.
	Written(o *Outlet, n int)
	// Relieve ends the waits that shorter queues may end. It sends nothing.
	Relieve()
	// Reopened decides what the new channel of o repeats of the previous channel.
	Reopened(o *Outlet)
	// Unreachable returns the reason to give up if no channel to a process could be opened for some
	// time, or nil. err is the reason of the last failure.
	Unreachable(to view.Process, since time.Duration, err error) error
	// Gone ends what waits for the process of o, which accepts no more frames.
	Gone(o *Outlet)

	// View processes a new view, which follows the view before.
	View(before view.View)
	// Tick processes a tick, which Loop.Arm has scheduled.
	Tick()
	// Flush waits, with w, until every message of this process has reached its destination.
	Flush(w *Waiter) error
	// Close releases the files of the transport once the engine has stopped.
	Close()
}

// A Handler processes the frames of one channel from another process. The engine's mutex is held at
// all calls.
type Handler interface {
	// Buffer returns the buffer for the payload of a frame whose header has arrived. The engine then
	// calls Arrived, unless the channel breaks.
	Buffer(h frame.Header) []byte
	// Arrived processes a frame. An error is a violation of the protocol by the other process. f is
	// valid until Arrived returns or calls Loop.RecordFinished.
	Arrived(f *frame.Frame) error
	// Reopened is called before the first frame of a channel that replaces another one.
	Reopened()
}

// A Canceller is a transport that can cancel receives.
type Canceller interface {
	// Cancel cancels posted receive r, and ends it.
	Cancel(r *Request)
}

// A Refuser is a transport that refuses messages whose payload has not arrived when the program
// receives no more messages.
type Refuser interface {
	// Refused returns the refused messages.
	Refused() []Unmatched
}

// A Counter is a transport that counts frames for a deadlock detector.
type Counter interface {
	// Count adds to w the numbers of frames sent to and received from each rank.
	Count(w *Waiting)
	// SendUncounted implements Engine.SendUncounted.
	SendUncounted(context uint32, dest int, payload []byte)
	// ReceivedUncounted records that a frame from source should not be counted.
	ReceivedUncounted(source int)
}
