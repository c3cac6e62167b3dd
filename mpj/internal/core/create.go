package core

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// All ranks of a communicator create new communicators from it in the same order, as with
// collectives. Several goroutines may create communicators from different parents at the same time.
// The functions here store the new communicator in d, whose field Face the caller has set.

// NewWorld makes c the communicator of all ranks of a job, of which this process is one. checks
// reports whether the process describes its active requests, for Pending.
func NewWorld(c *Comm, e *engine.Engine, rank, size int, checks bool) {
	c.engine, c.id, c.rank, c.size, c.named, c.name = e, WorldID, rank, size, size, "world"
	c.process = &Process{rank: rank, size: size, checks: checks, ids: newIdentities(c)}
}

// NewSelf makes d the communicator that contains only the process of c.
func NewSelf(c, d *Comm) {
	makeChild(c, d, SelfID, SelfID, []int{c.process.rank})
	d.name = "self"
}

// Dup makes d a communicator with the ranks and the topology of c, and with new contexts. The copy
// functions decide which attributes it gets. Its hints are those of x, which may be nil. If c is an
// intercommunicator, local becomes the communicator of its local group. All ranks of c call Dup.
func Dup(c, d, local *Comm, x *Info) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := dup(c, d, local); err != nil {
		return c.wrap(err)
	}
	d.topology = c.topology
	copyAttributes(c, d)
	addHints(d, x)
	return nil
}

func dup(c, d, local *Comm) error {
	c.startMaking()
	defer c.making.Unlock()
	l := c.descend()
	id, err := c.identify(l, agreementOf(c))
	if err != nil {
		return err
	}
	resemble(c, d, local, l)
	enter(d, id)
	return nil
}

// resemble makes d a communicator with the ranks of c, which has no id yet. If c is an
// intercommunicator, local becomes the communicator of its local group.
func resemble(c, d, local *Comm, l lineage) {
	if c.local != nil {
		equipInter(c, d, local, l, c.Group().Members, c.NamedGroup().Members)
	} else {
		equip(c, d, l, c.NamedGroup().Members)
	}
}

// agreementOf returns the agreement among all ranks of c.
func agreementOf(c *Comm) agreement {
	if c.local != nil {
		return spanOf(c).every
	}
	return c.every
}

// Form creates a communicator from what all ranks of c tell each other. All ranks of c call Form, and
// pass the same count of numbers. judge gets the numbers of all ranks, in rank order. It returns an
// error at all ranks or at none. members then returns the ranks of c that are in the communicator of
// this rank, in order. Form makes d that communicator, and reports whether this rank is a member.
func Form(c, d *Comm, numbers []int64, judge func(all []int64) error, members func(all []int64) ([]int, error)) (member bool, err error) {
	if err := c.CheckIntra(); err != nil {
		return false, err
	}
	c.startMaking()
	defer c.making.Unlock()
	l := c.descend()
	all, err := c.gatherAll(numbers...)
	if err != nil {
		return false, c.wrap(err)
	}
	if err := judge(all); err != nil {
		return false, err
	}
	id, err := c.identify(l, c.every)
	if err != nil {
		return false, c.wrap(err)
	}
	ranks, err := members(all)
	if err != nil || !slices.Contains(ranks, c.rank) {
		return false, err
	}
	world := make([]int, len(ranks))
	for i, r := range ranks {
		world[i] = c.WorldRank(r)
	}
	makeChild(c, d, id, l, world)
	return true, nil
}

// Split creates one communicator for each color, which contains all ranks that pass that color.
// Ranks are ordered by key, and ranks with equal keys by their rank in c. A rank that passes
// Undefined as color is in no communicator. All ranks of c call Split.
func Split(c, d *Comm, color, key int) (member bool, err error) {
	judge := func(all []int64) error {
		for i := range c.size {
			if theirs := all[2*i]; theirs < 0 && theirs != Undefined {
				return c.Failf(ErrArg, "rank %d passes color %d: colors are at least 0, or Undefined", i, theirs)
			}
		}
		return nil
	}
	return Form(c, d, []int64{int64(color), int64(key)}, judge, func(all []int64) ([]int, error) {
		if color == Undefined {
			return nil, nil
		}
		return sameColor(all, int64(color)), nil
	})
}

// sameColor returns the ranks with a color, ordered by key. all contains the color and the key of
// each rank.
func sameColor(all []int64, color int64) []int {
	var ranks []int
	for i := range len(all) / 2 {
		if all[2*i] == color {
			ranks = append(ranks, i)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	return ranks
}

// Create creates a communicator of the members of g, which are ranks of c, in the order of g. All
// ranks of c call Create, with the same group or with disjoint groups. A rank that is not a member
// of the group that it passes is in no communicator.
func Create(c, d *Comm, g Group) (member bool, err error) {
	outside := 0
	ranks := make([]int, g.Size())
	for i, m := range g.Members {
		if ranks[i] = c.RankOf(m); ranks[i] == Undefined {
			outside++
		}
	}
	judge := func(all []int64) error {
		for i := range c.size {
			if all[2*i] > 0 {
				return c.Failf(ErrGroup, "the group of rank %d has %d members that are not in the communicator", i, all[2*i])
			}
		}
		return nil
	}
	return Form(c, d, []int64{int64(outside), g.digest()}, judge, func(all []int64) ([]int, error) {
		if g.Rank() == Undefined {
			return nil, nil
		}
		for i, r := range ranks {
			if all[2*r+1] != all[2*c.rank+1] {
				return nil, c.Failf(ErrGroup, "rank %d, member %d of the group, passes a different group", r, i)
			}
		}
		return ranks, nil
	})
}

// digest returns a hash of the members in order.
func (g Group) digest() int64 {
	h := fnv.New64a()
	for _, m := range g.Members {
		h.Write([]byte{byte(m), byte(m >> 8), byte(m >> 16), byte(m >> 24)})
	}
	return int64(h.Sum64())
}

// Free ends c: later calls on it fail with ErrComm. Sends and receives in progress still complete.
// Free calls the delete functions of the attributes; if one returns an error, c is not freed. All
// ranks of c call Free. The world and Self cannot be freed, because they end with the process.
func Free(c *Comm) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.id == WorldID || c.id == SelfID {
		return c.Failf(ErrComm, "communicator %q cannot be freed: it ends when the world is finalized", c.Name())
	}
	if err := deleteAttributes(c); err != nil {
		return err
	}
	c.freed.Store(true)
	c.process.ids.set(c.id, nil)
	for slot := range uint32(Slots) {
		c.engine.Forget(c.Context(slot))
	}
	for i := range uint32(c.operations.slots()) {
		c.engine.Forget(c.Context(OperationSlot + i))
	}
	return nil
}

// makeChild makes d the communicator with the given id and world ranks, which include this process.
func makeChild(c, d *Comm, id uint32, l lineage, members []int) {
	equip(c, d, l, members)
	enter(d, id)
}

// equip makes d a communicator of the given world ranks, which has no id yet.
func equip(c, d *Comm, l lineage, members []int) {
	d.engine, d.process, d.lineage = c.engine, c.process, l
	address(d, members)
	d.size = len(members)
	d.rank = d.RankOf(c.process.rank)
	d.handler = c.Handler()
}

// enter gives d its id. The local group of an intercommunicator has the same id.
func enter(c *Comm, id uint32) {
	c.id = id
	if c.local != nil {
		c.local.id = id
	}
	c.process.ids.set(id, c)
}

// address makes members, which are world ranks, the ranks that messages on c address.
func address(c *Comm, members []int) {
	c.named = len(members)
	identity := true
	for rank, m := range members {
		identity = identity && m == rank
	}
	if identity {
		return
	}
	c.ranks = slices.Clone(members)
	c.inverse = make([]int32, slices.Max(members)+1)
	for i := range c.inverse {
		c.inverse[i] = Undefined
	}
	for rank, m := range members {
		c.inverse[m] = int32(rank)
	}
}
