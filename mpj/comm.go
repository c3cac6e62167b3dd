package mpj

import (
	"math"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/seam/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

const (
	// AnySource lets a receive or probe match a message of any rank.
	AnySource = words.AnySource
	// AnyTag lets a receive or probe match a message of any tag.
	AnyTag = words.AnyTag
	// ProcNull is the rank of nobody: what is sent to it vanishes, and a
	// receive from it returns at once with Source ProcNull and Size 0.
	ProcNull = -2
	// MaxTag is the largest tag; the smallest is 0.
	MaxTag = math.MaxInt32
	// Undefined stands for a number that there is not: what Count returns when
	// a message is no whole number of elements, the index that Waitany returns
	// when no request is active, the rank of a process in a group that it is
	// not a member of.
	Undefined = -3
)

// A Comm is a communicator: ranks that may send to each other, and contexts
// that keep their messages apart from those of every other communicator.
//
// Several goroutines may use one at the same time; the package's documentation
// says what is then up to the program.
type Comm struct {
	engine *engine.Engine
	world  *World
	id     uint32 // 24 bits; the engine has 0, the world communicator 1, Self 2

	rank, size int
	// ranks has the world rank of each rank that messages name; nil means that
	// they are the same. named is how many there are, and inverse has the rank
	// of each world rank, or Undefined. Messages on an intercommunicator name
	// the remote group.
	ranks   []int
	named   int
	inverse []int32
	local   *Comm // of an intercommunicator: the local group, with the same id

	freed latch

	making  sync.Mutex // held while a communicator is made of this one
	lineage lineage
	made    uint64 // communicators made of this one

	topology topology // nil without one

	operations operations // non-blocking collectives
	nearness   nearness
	spoils     collective.Spoils

	mu         sync.Mutex // guards what follows
	name       string
	errhandler Errhandler
	attributes []attribute       // in the order in which they were set
	called     map[uint32]string // with checks: the last collective in each slot; of all blocking ones in collectiveSlot
	compared   *comparison       // with checks: of the last collective
}

// worldID and selfID are the ids of the world communicator and of that of each
// rank alone.
const (
	worldID = 1
	selfID  = 2
)

// The slots of a communicator's contexts. Those of the non-blocking
// collectives follow from the number of the operation.
const (
	messageSlot       = 0 // the program's own messages
	collectiveSlot    = 1 // blocking collectives
	managementSlot    = 2 // agreement on new communicators
	neighbourhoodSlot = 3 // neighbourhood collectives
	leaderSlot        = 4 // leaders of groups that become an intercommunicator
	checkSlot         = 5 // comparison of calls, with P2PMPI_CHECK
	detectorSlot      = 6 // of the world, likewise

	slots = 7 // of these
)

// context returns the engine's context for one kind of messages of c. The
// engine numbers messages by context, source and destination: no two
// goroutines of this package send in one at the same time.
func (c *Comm) context(slot uint32) uint32 { return c.id<<8 | slot }

// worldRank returns the world rank of rank.
func (c *Comm) worldRank(rank int) int {
	if c.ranks == nil || rank < 0 { // AnySource stays what it is
		return rank
	}
	return c.ranks[rank]
}

// rankOf returns the rank of the process with a rank of the world, or
// Undefined.
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

// place returns where rank runs.
func (c *Comm) place(rank int) place {
	if c.world.places == nil {
		return place{}
	}
	return c.world.places[c.worldRank(rank)]
}

// Rank returns the number of this process in c, 0..Size()-1; of an
// intercommunicator in the local group.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks in c; of an intercommunicator in the local
// group.
func (c *Comm) Size() int { return c.size }

// Group returns the ranks of c; of an intercommunicator the local group.
func (c *Comm) Group() Group {
	if c.local != nil {
		return c.local.Group()
	}
	return c.namedGroup()
}

// namedGroup returns the group whose ranks messages on c name.
func (c *Comm) namedGroup() Group {
	g := Group{members: make([]int, c.named), self: c.world.rank}
	for i := range g.members {
		g.members[i] = c.worldRank(i)
	}
	return g
}

// Compare says how alike c and d are: Identical when they are one, Congruent
// when they have the same ranks in the same order, Similar in another order.
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

// Name returns the name of c for people: "world", or what SetName gave, or "".
func (c *Comm) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName names c. Errors show the name.
func (c *Comm) SetName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// A Status describes a message that was received or probed.
type Status struct {
	Source int // rank that sent it
	Tag    int
	Size   int // bytes; Count gives elements
	// Cancelled says that there was no message: Cancel has ended the receive.
	Cancelled bool
}

// Count returns how many elements of type T the message of s holds, or
// Undefined when its bytes are no whole number of them.
func Count[T Element](s Status) int {
	if s.Size%sizeOf[T]() != 0 {
		return Undefined
	}
	return s.Size / sizeOf[T]()
}

// statusOf returns what the engine says of a message in the terms of c.
func (c *Comm) statusOf(s words.Status) Status {
	return Status{Source: c.rankOf(s.Source), Tag: int(s.Tag), Size: s.Size}
}

// nothing is the status of what was received from ProcNull.
var nothing = Status{Source: ProcNull, Tag: AnyTag}

// empty is the status of what received nothing.
var empty = Status{Source: AnySource, Tag: AnyTag}

// plain reports that there is nothing to refuse, and no rank or tag that means something else:
// so is nearly every message. It is inlined, since within a module each call costs.
func (c *Comm) plain(rank, tag int) bool {
	return c != nil && uint(rank) < uint(c.named) && uint(tag) <= MaxTag && !c.freed.Load()
}

// checkDest refuses a message that cannot be sent. dest may be ProcNull.
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

// checkSource refuses a receive that cannot be. source may be ProcNull.
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

// check refuses a call on a communicator that there is not: the nil that Split
// and others return to ranks outside, or one that was freed.
func (c *Comm) check(op string) error {
	if c == nil {
		return failf(ErrComm, op, "this process is not in the communicator, which is nil")
	}
	if c.freed.Load() {
		return c.failf(ErrComm, op, "communicator %q was freed", c.Name())
	}
	return nil
}

// checkIntra is check for what an intercommunicator does not have.
func (c *Comm) checkIntra(op string) error {
	if err := c.check(op); err != nil {
		return err
	}
	if c.local != nil {
		return c.failf(ErrComm, op, "communicator %q is an intercommunicator: Merge makes one that has collectives", c.Name())
	}
	if err := c.world.forced.err; err != nil {
		return c.failf(ErrArg, op, "%v", err)
	}
	return nil
}

// checkRoot refuses a root that there is not.
func (c *Comm) checkRoot(op string, root int) error {
	if root < 0 || root >= c.size {
		return c.failf(ErrRoot, op, "root %d, ranks are 0..%d", root, c.size-1)
	}
	return nil
}
