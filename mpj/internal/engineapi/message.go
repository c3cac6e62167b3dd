package engineapi

import (
	"errors"
	"fmt"
	"math"
)

// AnySource and AnyTag match every source and tag. They are untyped because sources are int and
// tags are int32.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Mode is the mode of a send, as in MPI. For buffered mode, the caller copies the message and
// uses Standard.
type Mode uint8

// The modes.
const (
	Standard    Mode = iota
	Synchronous      // complete when a receive has matched the message
	Ready            // the receive is already posted; same as Standard here
)

// A Status describes a message.
type Status struct {
	Source    int // rank of the sender
	Tag       int32
	Size      int // in bytes
	Cancelled bool
}

// A TruncateError reports that a message was longer than the buffer of the receive that it matched.
// The message is lost.
type TruncateError struct {
	Status   Status
	Capacity int // size of the buffer, in bytes
}

// Error names the message and both lengths.
func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d with tag %d, buffer of %d bytes", e.Status.Size, e.Status.Source, e.Status.Tag, e.Capacity)
}

// An Unmatched is a message that has arrived but was not received.
type Unmatched struct {
	Context uint32
	Status  Status
}

// NoticeTag is the tag of a failure notice, which announces that waits in its context may never end.
// Without replicas, a receive with AnyTag that has no message fails with ErrNotice as soon as a
// notice from any rank arrives. With replicas this would depend on timing, so a notice is an
// ordinary message.
const NoticeTag = math.MinInt32

// ReasonTag is the tag of the message that follows a failure notice and contains the reason, in at
// most ReasonMost bytes. The program can receive this message until the engine is closed.
const (
	ReasonTag  = NoticeTag + 1
	ReasonMost = 1 << 10
)

// ErrNotice is the error of a receive that a failure notice has ended. The notice itself must still
// be received.
var ErrNotice = errors.New("the call was interrupted by a failure notice")

// A FinalizedError is the error of a receive or probe that would wait forever.
type FinalizedError struct{ Rank int } // world rank

// Error names the rank.
func (e *FinalizedError) Error() string {
	return fmt.Sprintf("rank %d of the world has finalized and sends no more messages", e.Rank)
}

// ErrClosed is the error of every call on a closed engine.
var ErrClosed = errors.New("engine is closed")

// ErrReplicated is the error of a call that replicas cannot make identically.
var ErrReplicated = errors.New("not possible with replicas (r > 1)")
