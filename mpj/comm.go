package mpj

import (
	"math"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

const (
	// AnySource lets a receive or probe match a message of any rank.
	AnySource = engineapi.AnySource
	// AnyTag lets a receive or probe match a message of any tag.
	AnyTag = engineapi.AnyTag
	// ProcNull is the null rank: messages sent to it are discarded, and a receive from it returns
	// at once with Source ProcNull and Size 0.
	ProcNull = -2
	// MaxTag is the largest tag; the smallest is 0.
	MaxTag = math.MaxInt32
	// Undefined represents a number that does not exist. Count returns Undefined if a message is not
	// a whole number of elements, Waitany if no request is active, and Group.Rank for a process that
	// is not a member.
	Undefined = -3
)

// A Comm is a communicator: ranks that may send to each other, and contexts that separate their
// messages from those of every other communicator.
//
// Several goroutines may use a Comm at the same time; the package documentation describes what the
// program must then ensure.
type Comm struct {
	engine *engine.Engine
	world  *World
	id     uint32 // 24 bits; the engine has 0, the world communicator 1, Self 2

	rank, size int
	// ranks maps each rank that messages may address to its world rank; nil means the identity.
	// named is the number of these ranks. inverse maps a world rank to its rank in c, or to
	// Undefined. Messages on an intercommunicator address the remote group.
	ranks   []int
	named   int
	inverse []int32
	local   *Comm // local group of an intercommunicator, with the same id

	freed latch

	making  sync.Mutex // held while a communicator is created from this one
	lineage lineage
	made    uint64 // communicators created from this one

	topology topology // nil without a topology

	operations operations // nonblocking collectives
	locality   locality
	failures   collective.Failures

	mu         sync.Mutex // guards the fields below
	name       string
	errhandler Errhandler
	attributes []attribute       // in the order in which they were set
	called     map[uint32]string // with checks: last collective in each slot; blocking collectives are in collectiveSlot
	compared   *comparison       // with checks: comparison of the last collective
}

// worldID and selfID are the ids of the world communicator and of the communicator that contains
// only this rank.
const (
	worldID = 1
	selfID  = 2
)

// The slots of a communicator's contexts. The slots of nonblocking collectives are computed from
// the number of the operation.
const (
	messageSlot       = 0 // the program's own messages
	collectiveSlot    = 1 // blocking collectives
	managementSlot    = 2 // agreement on new communicators
	neighbourhoodSlot = 3 // neighbourhood collectives
	leaderSlot        = 4 // group leaders that create an intercommunicator
	checkSlot         = 5 // comparison of calls, with P2PMPI_CHECK
	detectorSlot      = 6 // deadlock detection in the world communicator, with P2PMPI_CHECK

	slots = 7 // number of slots above
)

// context returns the engine's context for one slot of c. The engine numbers messages by context,
// source and destination, so no two goroutines of this package may send in one context at the same
// time.
func (c *Comm) context(slot uint32) uint32 { return c.id<<8 | slot }

// worldRank converts a rank that messages on c address to a world rank. Wildcards and ProcNull are unchanged.
func (c *Comm) worldRank(rank int) int {
	if c.ranks == nil || rank < 0 { // AnySource stays unchanged
		return rank
	}
	return c.ranks[rank]
}

// rankOf returns the rank in c of the process with a world rank, or Undefined.
func (c *Comm) rankOf(world int) int {
	switch {
	case world < 0:
		return Undefined
	case c.ranks == nil && world < c.named:
		return world
	case world < len(c.inverse):
		return int(c.inverse[world])
	}
	return Undefined
}

// place returns the machine and cluster of rank.
func (c *Comm) place(rank int) place {
	if c.world.places == nil {
		return place{}
	}
	return c.world.places[c.worldRank(rank)]
}

// Rank returns the rank of this process in c, 0..Size()-1, or in the local group of an
// intercommunicator.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks in c, or in the local group of an intercommunicator.
func (c *Comm) Size() int { return c.size }

// Group returns the ranks of c, or the local group of an intercommunicator.
func (c *Comm) Group() Group {
	if c.local != nil {
		return c.local.Group()
	}
	return c.namedGroup()
}

// namedGroup returns the group whose ranks messages on c address.
func (c *Comm) namedGroup() Group {
	g := Group{members: make([]int, c.named), self: c.world.rank}
	for i := range g.members {
		g.members[i] = c.worldRank(i)
	}
	return g
}

// Compare compares c and d. It returns Identical if they are the same communicator, Congruent if
// they have the same ranks in the same order, Similar if they have the same ranks in a different
// order, and otherwise Unequal.
func (c *Comm) Compare(d *Comm) Comparison {
	if c == d {
		return Identical
	}
	if (c.local == nil) != (d.local == nil) {
		return Unequal
	}
	comparison := c.namedGroup().Compare(d.namedGroup())
	if c.local != nil {
		comparison = max(comparison, c.Group().Compare(d.Group()))
	}
	if comparison == Identical {
		return Congruent
	}
	return comparison
}

// Name returns the display name of c: "world", the name set with SetName, or "".
func (c *Comm) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName sets the name of c, which errors include.
func (c *Comm) SetName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// A Status describes a message that was received or probed.
type Status struct {
	Source int // rank of the sender
	Tag    int
	Size   int // size in bytes; Count converts it to elements
	// Cancelled reports that no message was received because Cancel ended the receive.
	Cancelled bool
}

// Count returns the number of elements of type T in the message of s, or Undefined if the size of
// the message is not a whole number of elements.
func Count[T Element](s Status) int {
	if s.Size%sizeOf[T]() != 0 {
		return Undefined
	}
	return s.Size / sizeOf[T]()
}

// statusOf converts a status of the engine to the ranks of c.
func (c *Comm) statusOf(s engineapi.Status) Status {
	return Status{Source: c.rankOf(s.Source), Tag: int(s.Tag), Size: s.Size}
}

// nothing is the status of every receive from ProcNull.
var nothing = Status(core.NullStatus)

// empty is the status of a request that received no message.
var empty = Status(core.EmptyStatus)

// plain reports whether c, rank and tag are valid and neither rank nor tag has a special meaning,
// as for nearly every message. It stays small enough to be inlined, because calls are costly within
// a module.
func (c *Comm) plain(rank, tag int) bool {
	return c != nil && uint(rank) < uint(c.named) && uint(tag) <= MaxTag && !c.freed.Load()
}

// checkDest returns an error if the arguments of a send are invalid. dest may be ProcNull.
func (c *Comm) checkDest(op string, dest, tag int) error {
	if err := c.check(op); err != nil {
		return err
	}
	if dest != ProcNull && (dest < 0 || dest >= c.named) {
		return c.failf(ErrRank, op, "dest %d, ranks are 0..%d", dest, c.named-1)
	}
	if tag < 0 || tag > MaxTag {
		return c.failf(ErrTag, op, "tag %d, tags are 0..%d", tag, MaxTag)
	}
	return nil
}

// checkSource returns an error if the arguments of a receive are invalid. source may be ProcNull.
func (c *Comm) checkSource(op string, source, tag int) error {
	if err := c.check(op); err != nil {
		return err
	}
	if source != AnySource && source != ProcNull && (source < 0 || source >= c.named) {
		return c.failf(ErrRank, op, "source %d, ranks are 0..%d or AnySource", source, c.named-1)
	}
	if tag != AnyTag && (tag < 0 || tag > MaxTag) {
		return c.failf(ErrTag, op, "tag %d, tags are 0..%d or AnyTag", tag, MaxTag)
	}
	return nil
}

// check returns an error if c is nil or was freed. Split and similar functions return nil at ranks
// outside the new communicator.
func (c *Comm) check(op string) error {
	if c == nil {
		return failf(ErrComm, op, "this process is not in the communicator, which is nil")
	}
	if c.freed.Load() {
		return c.failf(ErrComm, op, "communicator %q was freed", c.Name())
	}
	return nil
}

// checkIntra is like check, for operations that intercommunicators do not support.
func (c *Comm) checkIntra(op string) error {
	if err := c.check(op); err != nil {
		return err
	}
	if c.local != nil {
		return c.failf(ErrComm, op, "communicator %q is an intercommunicator: use Merge to make a communicator that has collectives", c.Name())
	}
	if err := c.world.forced.err; err != nil {
		return c.failf(ErrArg, op, "%v", err)
	}
	return nil
}

// checkRoot returns an error if root is not a rank of c.
func (c *Comm) checkRoot(op string, root int) error {
	if root < 0 || root >= c.size {
		return c.failf(ErrRoot, op, "root %d, ranks are 0..%d", root, c.size-1)
	}
	return nil
}
