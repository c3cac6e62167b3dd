package core

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

const (
	// AnySource lets a receive or probe match a message of any rank.
	AnySource = engineapi.AnySource
	// AnyTag lets a receive or probe match a message of any tag.
	AnyTag = engineapi.AnyTag
	// ProcNull is the null rank: messages sent to it are discarded, and a receive from it returns
	// NullStatus at once.
	ProcNull = -2
	// Undefined represents a number that does not exist.
	Undefined = -3
	// MaxTag is the largest tag; the smallest is 0.
	MaxTag = math.MaxInt32
)

// A Status describes a message that was received or probed.
type Status struct {
	Source int // rank of the sender
	Tag    int
	Size   int // in bytes
	// Cancelled reports that no message was received because the receive was cancelled.
	Cancelled bool
}

// EmptyStatus is the status of a request that received no message.
var EmptyStatus = Status{Source: AnySource, Tag: AnyTag}

// NullStatus is the status of every receive from ProcNull.
var NullStatus = Status{Source: ProcNull, Tag: AnyTag}

// Count returns the number of items of l in the message of s, or Undefined if the message is not a
// whole number of items.
func (s Status) Count(l *layout.Layout) int { return orUndefined(l.Count(s.Size)) }

// Elements returns the number of basic elements in the message of s, even if the message fills the
// last item of l only in part. It returns Undefined if the message ends within an element.
func (s Status) Elements(l *layout.Layout) int { return orUndefined(l.Elements(s.Size)) }

func orUndefined(n int, ok bool) int {
	if !ok {
		return Undefined
	}
	return n
}
