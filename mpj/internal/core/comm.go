package core

import (
	"fmt"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A Comm is a communicator: ranks that may send to each other, and contexts that separate their
// messages from those of every other communicator.
//
// An interface for programs embeds a Comm in its own type, and passes the memory for a new
// communicator to the functions that create one.
type Comm struct {
	// Face is the communicator of the interface for programs, to which this Comm belongs. Errors lead
	// to it.
	Face any

	engine  *engine.Engine
	process *Process
	id      uint32 // 24 bits; the engine has 0, the world communicator WorldID, Self SelfID

	rank, size int
	// ranks maps each rank that messages may address to its world rank; nil means the identity.
	// named is the number of these ranks. inverse maps a world rank to its rank in c, or to
	// Undefined. Messages on an intercommunicator address the remote group.
	ranks   []int
	named   int
	inverse []int32
	local   *Comm // local group of an intercommunicator, with the same id

	freed      latch // also set until the request of Idup is complete
	incomplete latch // whether the request of Idup is not complete

	making  sync.Mutex // held while a communicator is created from this one
	lineage lineage
	made    uint64          // communicators created from this one
	idups   <-chan struct{} // end of the last Idup; nil before the first

	operations operations // nonblocking collectives
	locality   locality
	failures   collective.Failures
	topology   topology // nil without a topology

	mu         sync.Mutex         // guards the fields below
	ofGroups   map[lineage]uint64 // communicators created by CreateGroup, by tag and group
	name       string
	handler    any // error handler of the interface for programs
	attributes attributes
	hints      []hint            // set with an Info
	called     map[uint32]string // with checks: last collective in each slot; CalledIn describes which slots
	compared   *comparison       // with checks: comparison of the last collective
}

// WorldID and SelfID are the ids of the world communicator and of the communicator that contains
// only this rank.
const (
	WorldID = 1
	SelfID  = 2
)

// The slots of a communicator's contexts. The slots of nonblocking collectives are computed from
// the number of the operation.
const (
	MessageSlot       = 0 // the program's own messages
	CollectiveSlot    = 1 // blocking collectives
	ManagementSlot    = 2 // agreement on new communicators
	NeighbourhoodSlot = 3 // neighbourhood collectives
	LeaderSlot        = 4 // group leaders that create an intercommunicator
	CheckSlot         = 5 // comparison of calls, with P2PMPI_CHECK
	DetectorSlot      = 6 // deadlock detection in the world communicator, with P2PMPI_CHECK
	GroupSlot         = 7 // agreement of the members of a group, with CreateGroup

	Slots = 8 // number of slots above
)

// Context returns the engine's context for one slot of c. The engine numbers messages by context,
// source and destination, so no two goroutines of this process may send in one context at the same
// time.
func (c *Comm) Context(slot uint32) uint32 { return c.id<<8 | slot }

// Engine returns the engine of the process.
func (c *Comm) Engine() *engine.Engine { return c.engine }

// Process returns the process.
func (c *Comm) Process() *Process { return c.process }

// ID returns the id of c, which is unique at each of its ranks.
func (c *Comm) ID() uint32 { return c.id }

// Rank returns the rank of this process in c, or in the local group of an intercommunicator.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks in c, or in the local group of an intercommunicator.
func (c *Comm) Size() int { return c.size }

// Addressable returns the number of ranks that messages on c may address: those of c, or of the
// remote group of an intercommunicator.
func (c *Comm) Addressable() int { return c.named }

// WorldRanks maps each rank that messages may address to its world rank. nil means the identity.
func (c *Comm) WorldRanks() []int { return c.ranks }

// Local returns the communicator of the local group of an intercommunicator, or nil.
func (c *Comm) Local() *Comm { return c.local }

// WorldRank converts a rank that messages on c address to a world rank. Wildcards and ProcNull are
// unchanged.
func (c *Comm) WorldRank(rank int) int {
	if c.ranks == nil || rank < 0 { // AnySource stays unchanged
		return rank
	}
	return c.ranks[rank]
}

// RankOf returns the rank in c of the process with a world rank, or Undefined.
func (c *Comm) RankOf(world int) int {
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

// Group returns the ranks of c, or the local group of an intercommunicator.
func (c *Comm) Group() Group {
	if c.local != nil {
		return c.local.Group()
	}
	return c.NamedGroup()
}

// NamedGroup returns the group whose ranks messages on c address.
func (c *Comm) NamedGroup() Group {
	g := Group{Members: make([]int, c.named), Self: c.process.rank}
	for i := range g.Members {
		g.Members[i] = c.WorldRank(i)
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
	comparison := c.NamedGroup().Compare(d.NamedGroup())
	if c.local != nil {
		comparison = max(comparison, c.Group().Compare(d.Group()))
	}
	if comparison == Identical {
		return Congruent
	}
	return comparison
}

// Made returns the number of communicators that were created from c, which is part of a checkpoint.
func (c *Comm) Made() uint64 { return c.made }

// SetMade restores the number that Made returned.
func (c *Comm) SetMade(made uint64) { c.made = made }

// Name returns the display name of c, or "".
func (c *Comm) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName sets the display name of c, which errors include.
func (c *Comm) SetName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// Handler returns the value that SetHandler has set, or nil. A communicator created from c inherits
// it.
func (c *Comm) Handler() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handler
}

// SetHandler sets the error handler of c. Only the interface for programs calls it.
func (c *Comm) SetHandler(handler any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = handler
}

// Title returns a display name for c.
func (c *Comm) Title() string {
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("a communicator of %d ranks", c.size)
}

// StatusOf converts a status of the engine to the ranks of c.
func (c *Comm) StatusOf(s engineapi.Status) Status {
	return Status{Source: c.RankOf(s.Source), Tag: int(s.Tag), Size: s.Size}
}
