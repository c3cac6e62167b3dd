package words

import (
	"errors"
	"fmt"
	"math"
)

// AnySource and AnyTag match every source and tag. They are untyped because
// sources are int and tags int32.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Mode is the mode of a send, as in MPI. The buffered mode is a copy of the
// caller's and Standard.
type Mode uint8

// The modes.
const (
	Standard    Mode = iota
	Synchronous      // done once a receive has matched the message
	Ready            // the receive is posted already; here the same as Standard
)

// A Status describes a message.
type Status struct {
	Source    int // rank
	Tag       int32
	Size      int // bytes
	Cancelled bool
}

// A TruncateError says that a message was longer than the buffer of the
// receive that it matched. The message is lost.
type TruncateError struct {
	Status   Status
	Capacity int // bytes of the buffer
}

// Error names the message and both lengths.
func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d with tag %d, buffer of %d bytes", e.Status.Size, e.Status.Source, e.Status.Tag, e.Capacity)
}

// An Unmatched is a message that has arrived and that no receive has taken.
type Unmatched struct {
	Context uint32
	Status  Status
}

// NewsTag is the tag of a message that says that nobody needs to wait in its
// context any more. Without replicas a receive of any tag that has no message
// fails with ErrNews as soon as there is one, from whatever rank. With replicas
// that would depend on timing: there it is a message like others.
const NewsTag = math.MinInt32

// ReasonTag is the tag of the message, of at most ReasonMost bytes, that follows
// news and says why. It can be received until the engine is closed.
const (
	ReasonTag  = NewsTag + 1
	ReasonMost = 1 << 10
)

// ErrNews is the error of a receive that news has ended. The news is still to be
// received.
var ErrNews = errors.New("there is news")

// A FinalizedError is the error of a receive or probe that would wait for ever.
type FinalizedError struct{ Rank int } // of the world

// Error names the rank.
func (e *FinalizedError) Error() string {
	return fmt.Sprintf("rank %d of the world has finalized and sends nothing more", e.Rank)
}

// ErrClosed is the error of every call on an engine that was closed.
var ErrClosed = errors.New("engine is closed")

// ErrReplicated is the error of a call that replicas cannot make alike.
var ErrReplicated = errors.New("not possible with replicas (r > 1)")
