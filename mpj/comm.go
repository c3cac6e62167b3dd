package mpj

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

const (
	// AnySource lets a receive or probe match a message of any rank.
	AnySource = engine.AnySource
	// AnyTag lets a receive or probe match a message of any tag.
	AnyTag = engine.AnyTag
	// MaxTag is the largest tag; the smallest is 0.
	MaxTag = math.MaxInt32
	// Undefined is what Count returns when a message is no whole number of
	// elements, and the index that Waitany returns when no request is active.
	Undefined = -1
)

// A Comm is a communicator: ranks that may send to each other, and a context
// that keeps their messages apart from those of every other communicator.
//
// Several goroutines may use one at the same time for calls whose outcome does
// not depend on timing. Receives and probes with AnySource, and all of Test*,
// Iprobe, Waitany, Waitsome and Wtime, are for one goroutine at a time.
type Comm struct {
	engine *engine.Engine
	rank   int
	size   int

	messages    uint32 // context of the program's own messages
	collectives uint32 // context of the collectives, so that the two never meet
}

// Rank returns the number of this process in c, 0..Size()-1.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks in c.
func (c *Comm) Size() int { return c.size }

// A Status describes a message that was received or probed.
type Status struct {
	Source int // rank that sent it
	Tag    int
	Size   int // bytes; Count gives elements
}

// Count returns how many elements of type T the message of s holds, or
// Undefined when its bytes are no whole number of them.
func Count[T Element](s Status) int {
	if s.Size%sizeOf[T]() != 0 {
		return Undefined
	}
	return s.Size / sizeOf[T]()
}

func statusOf(s engine.Status) Status {
	return Status{Source: s.Source, Tag: int(s.Tag), Size: s.Size}
}

func (c *Comm) checkDest(op string, dest, tag int) error {
	if dest < 0 || dest >= c.size {
		return failf(ErrRank, op, "dest %d, ranks are 0..%d", dest, c.size-1)
	}
	if tag < 0 || tag > MaxTag {
		return failf(ErrTag, op, "tag %d, tags are 0..%d", tag, MaxTag)
	}
	return nil
}

func (c *Comm) checkSource(op string, source, tag int) error {
	if source != AnySource && (source < 0 || source >= c.size) {
		return failf(ErrRank, op, "source %d, ranks are 0..%d or AnySource", source, c.size-1)
	}
	if tag != AnyTag && (tag < 0 || tag > MaxTag) {
		return failf(ErrTag, op, "tag %d, tags are 0..%d or AnyTag", tag, MaxTag)
	}
	return nil
}

func (c *Comm) checkRoot(op string, root int) error {
	if root < 0 || root >= c.size {
		return failf(ErrRoot, op, "root %d, ranks are 0..%d", root, c.size-1)
	}
	return nil
}
