package mpj

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
)

// All ranks of a communicator create new communicators from it in the same order, as with
// collectives. Several goroutines may create communicators from different parents at the same time.

// Dup returns a communicator with the ranks, the topology and the error handler of c, and with new
// contexts. Copy functions decide which attributes it gets. All ranks of c call Dup. A library
// duplicates the communicator that it is given, to separate its messages from those of the program.
func (c *Comm) Dup() (*Comm, error) {
	if err := c.check("Dup"); err != nil {
		return nil, err
	}
	if err := c.agree("Dup", plainCall(""), nil); err != nil {
		return nil, err
	}
	d, err := c.dup()
	if err != nil {
		return nil, c.wrap("Dup", err)
	}
	c.copyAttributes(d)
	return d, nil
}

func (c *Comm) dup() (*Comm, error) {
	c.making.Lock()
	defer c.making.Unlock()
	l := c.descend()
	id, err := c.identify(l, c.agreement())
	if err != nil {
		return nil, err
	}
	if c.local != nil {
		return c.interOf(id, l, c.Group().members, c.namedGroup().members), nil
	}
	d := c.child(id, l, c.namedGroup().members)
	d.topology = c.topology
	return d, nil
}

// agreement returns the agreement among all ranks of c.
func (c *Comm) agreement() agreement {
	if c.local != nil {
		return c.span().every
	}
	return c.every
}

// Split creates one communicator for each color, which contains all ranks that pass that color.
// Ranks are ordered by key, and ranks with equal keys by their rank in c. A rank that passes
// Undefined as color gets nil. All ranks of c call Split.
func (c *Comm) Split(color, key int) (*Comm, error) { return c.split("Split", color, key) }

// A SplitKind selects the ranks that SplitType groups together.
type SplitKind int

const (
	// SplitMachine groups the ranks on one machine, which share memory.
	SplitMachine SplitKind = iota
	// SplitCluster groups the ranks on nearby machines.
	SplitCluster
)

// SplitType creates a communicator of the ranks that share the resource of kind with this rank,
// ordered by key. All ranks of c call SplitType.
func (c *Comm) SplitType(kind SplitKind, key int) (*Comm, error) {
	const op = "SplitType"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	var err error
	at, color := c.place(c.rank), 0
	switch kind {
	case SplitMachine:
		color = at.machine
	case SplitCluster:
		color = at.cluster
	default:
		err = c.failf(ErrArg, op, "kind %d", kind)
	}
	if c.world.checks {
		k := alikeCall("kind %d", kind)
		k.Own = fmt.Sprintf("key %d", key)
		err = c.agree(op, k, err)
	}
	if err != nil {
		return nil, err
	}
	d, err := c.splitOff(op, color, key)
	return d, c.wrap(op, err)
}

func (c *Comm) split(op string, color, key int) (*Comm, error) {
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree(op, plainCall(fmt.Sprintf("color %d, key %d", color, key)), nil); err != nil {
			return nil, err
		}
	}
	d, err := c.splitOff(op, color, key)
	return d, c.wrap(op, err)
}

func (c *Comm) splitOff(op string, color, key int) (*Comm, error) {
	c.making.Lock()
	defer c.making.Unlock()
	l := c.descend()
	all, err := c.gatherAll(int64(color), int64(key))
	if err != nil {
		return nil, err
	}
	for i := range c.size {
		if theirs := all[2*i]; theirs < 0 && theirs != Undefined {
			return nil, failf(ErrArg, op, "rank %d passes color %d: colors are at least 0, or Undefined", i, theirs)
		}
	}
	id, err := c.identify(l, c.every)
	if err != nil || color == Undefined {
		return nil, err
	}
	return c.child(id, l, c.sameColor(all)), nil
}

// sameColor returns the world ranks of the ranks with the color of this rank, ordered by key. all
// contains the color and the key of each rank.
func (c *Comm) sameColor(all []int64) []int {
	var ranks []int
	for i := range c.size {
		if all[2*i] == all[2*c.rank] {
			ranks = append(ranks, i)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	for i, r := range ranks {
		ranks[i] = c.worldRank(r)
	}
	return ranks
}

// Create creates a communicator of the members of g, which are ranks of c, in the order of g. All
// ranks of c call Create, with the same group or with disjoint groups. A rank that is not a member
// of the group that it passes gets nil.
func (c *Comm) Create(g Group) (*Comm, error) {
	if err := c.checkIntra("Create"); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree("Create", plainCall(fmt.Sprintf("%d members", g.Size())), nil); err != nil {
			return nil, err
		}
	}
	d, err := c.create(g)
	return d, c.wrap("Create", err)
}

func (c *Comm) create(g Group) (*Comm, error) {
	c.making.Lock()
	defer c.making.Unlock()
	l := c.descend()
	outside := g.core().Where(func(m int) bool { return c.rankOf(m) == Undefined }).Size()
	all, err := c.gatherAll(int64(outside), g.digest())
	if err != nil {
		return nil, err
	}
	for i := range c.size {
		if all[2*i] > 0 {
			return nil, failf(ErrGroup, "Create", "the group of rank %d has %d members that are not in the communicator", i, all[2*i])
		}
	}
	id, err := c.identify(l, c.every)
	if err != nil || g.Rank() == Undefined {
		return nil, err
	}
	mine := all[2*c.rank+1]
	for i, m := range g.members {
		if r := c.rankOf(m); all[2*r+1] != mine {
			return nil, failf(ErrGroup, "Create", "rank %d, member %d of the group, passes a different group", r, i)
		}
	}
	return c.child(id, l, g.members), nil
}

// digest returns a hash of the members in order.
func (g Group) digest() int64 {
	h := fnv.New64a()
	for _, m := range g.members {
		h.Write([]byte{byte(m), byte(m >> 8), byte(m >> 16), byte(m >> 24)})
	}
	return int64(h.Sum64())
}

// Free ends c: later calls on it fail with ErrComm. Sends and receives in progress still complete.
// Free calls the delete functions of the attributes; if one returns an error, c is not freed. All
// ranks of c call Free. The world and Self cannot be freed.
func (c *Comm) Free() error {
	if err := c.check("Free"); err != nil {
		return err
	}
	if c.id == worldID || c.id == selfID {
		return c.failf(ErrComm, "Free", "communicator %q cannot be freed: it ends when the world is finalized", c.Name())
	}
	if err := c.deleteAttributes("Free"); err != nil {
		return err
	}
	c.freed.Store(true)
	c.world.identities.set(c.id, nil)
	for slot := range uint32(slots) {
		c.engine.Forget(c.context(slot))
	}
	for i := range uint32(c.operations.slots()) {
		c.engine.Forget(c.context(operationSlot + i))
	}
	return nil
}

// child returns the communicator with the given id and world ranks, which include this process.
func (c *Comm) child(id uint32, l lineage, members []int) *Comm {
	d := &Comm{engine: c.engine, world: c.world, id: id, lineage: l, errhandler: c.Errhandler()}
	d.address(members)
	d.size = len(members)
	d.rank = d.rankOf(c.world.rank)
	c.world.identities.set(id, d)
	return d
}

// address makes members, which are world ranks, the ranks that messages on c address.
func (c *Comm) address(members []int) {
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
