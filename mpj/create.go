package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// All ranks of a communicator create new communicators from it in the same order, as with
// collectives. Several goroutines may create communicators from different parents at the same time.

// Dup returns a communicator with the ranks, the topology and the error handler of c, and with new
// contexts. Copy functions decide which attributes it gets. All ranks of c call Dup. A library
// duplicates the communicator that it is given, to separate its messages from those of the program.
// The duplicate has no hints.
func (c *Comm) Dup() (*Comm, error) { return c.dup("Dup", nil) }

// DupWithInfo is Dup with the hints of the duplicate.
func (c *Comm) DupWithInfo(x *Info) (*Comm, error) { return c.dup("DupWithInfo", x) }

func (c *Comm) dup(op string, x *Info) (*Comm, error) {
	if err := c.check(op); err != nil {
		return nil, err
	}
	if err := c.agree(op, plainCall(""), nil); err != nil {
		return nil, err
	}
	d, local := c.heir(), (*core.Comm)(nil)
	if c.TestInter() {
		local = &c.heir().base
	}
	err := core.Dup(&c.base, &d.base, local, (*core.Info)(x))
	return c.created(op, d, err == nil, err)
}

// Idup is the nonblocking form of Dup. The communicator that it returns cannot be used until the
// request is complete: calls on it fail with ErrComm. Copy functions of attributes are called by Idup
// itself. All ranks of c call Idup.
func (c *Comm) Idup() (*Comm, *Request, error) { return c.idup("Idup", nil) }

// IdupWithInfo is Idup with the hints of the duplicate.
func (c *Comm) IdupWithInfo(x *Info) (*Comm, *Request, error) { return c.idup("IdupWithInfo", x) }

func (c *Comm) idup(op string, x *Info) (*Comm, *Request, error) {
	if err := c.check(op); err != nil {
		return nil, nil, err
	}
	if err := c.agree(op, plainCall(""), nil); err != nil {
		return nil, nil, err
	}
	d, local := c.heir(), (*core.Comm)(nil)
	if c.TestInter() {
		local = &c.heir().base
	}
	r, err := core.Idup(&c.base, &d.base, local, (*core.Info)(x), op)
	if err != nil {
		return nil, nil, errorOf(op, err)
	}
	return d, (*Request)(r), nil
}

// heir returns the memory for a communicator that is created from c.
func (c *Comm) heir() *Comm {
	d := &Comm{world: c.world}
	d.base.Face = d
	return d
}

// created returns the result of op, which has created d from c: d at a member, and nil at other ranks.
func (c *Comm) created(op string, d *Comm, member bool, err error) (*Comm, error) {
	if err != nil || !member {
		return nil, c.wrap(op, err)
	}
	return d, nil
}

// derive returns the communicator that op creates from c, or nil at ranks outside it. form makes d that
// communicator, and reports whether this rank is a member.
func (c *Comm) derive(op string, form func(d *core.Comm) (member bool, err error)) (*Comm, error) {
	if err := c.check(op); err != nil {
		return nil, err
	}
	d := c.heir()
	member, err := form(&d.base)
	return c.created(op, d, member, err)
}

// Split creates one communicator for each color, which contains all ranks that pass that color.
// Ranks are ordered by key, and ranks with equal keys by their rank in c. A rank that passes
// Undefined as color gets nil. All ranks of c call Split.
//
// If c is an intercommunicator, Split creates intercommunicators of the ranks of both groups that pass
// the same color. A rank whose color no rank of the other group passes gets nil.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if c == nil || !c.TestInter() {
		return c.split("Split", color, key)
	}
	own := fmt.Sprintf("color %d, key %d", color, key)
	return c.createInter("Split", own, func(d, local *core.Comm) (bool, error) {
		return core.SplitInter(&c.base, d, local, color, key)
	})
}

// A SplitKind selects the ranks that SplitType groups together.
type SplitKind int

const (
	// SplitMachine groups the ranks on one machine, which share memory.
	SplitMachine SplitKind = iota
	// SplitCluster groups the ranks on nearby machines.
	SplitCluster
	// SplitUndefined is the kind of a rank that gets no communicator. The other ranks may pass another
	// kind.
	SplitUndefined SplitKind = Undefined
)

// SplitType creates a communicator of the ranks that share the resource of kind with this rank,
// ordered by key. All ranks of c call SplitType, with the same kind or with SplitUndefined. A rank that
// passes SplitUndefined gets nil.
func (c *Comm) SplitType(kind SplitKind, key int) (*Comm, error) {
	const op = "SplitType"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	var err error
	at, color := core.PlaceOf(&c.base, c.Rank()), 0
	switch kind {
	case SplitMachine:
		color = at.Machine
	case SplitCluster:
		color = at.Cluster
	case SplitUndefined:
		color = Undefined
	default:
		err = c.failf(ErrArg, op, "kind %d", kind)
	}
	if c.world.checks {
		k := alikeCall("kind %d", kind)
		k.Own, k.Abstains = fmt.Sprintf("key %d", key), kind == SplitUndefined
		err = c.agree(op, k, err)
	}
	if err != nil {
		return nil, err
	}
	return c.splitOff(op, color, key)
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
	return c.splitOff(op, color, key)
}

func (c *Comm) splitOff(op string, color, key int) (*Comm, error) {
	d := c.heir()
	member, err := core.Split(&c.base, &d.base, color, key)
	return c.created(op, d, member, err)
}

// Create creates a communicator of the members of g, which are ranks of c, in the order of g. All
// ranks of c call Create, with the same group or with disjoint groups. A rank that is not a member
// of the group that it passes gets nil.
//
// If c is an intercommunicator, g is a part of its local group, and all ranks of the local group pass
// the same g. Create then creates an intercommunicator of the two groups that the local and the remote
// ranks pass. If either is empty, all ranks get nil.
func (c *Comm) Create(g Group) (*Comm, error) {
	if c != nil && c.TestInter() {
		own := fmt.Sprintf("%d members", g.Size())
		return c.createInter("Create", own, func(d, local *core.Comm) (bool, error) {
			return core.CreateInter(&c.base, d, local, g.core())
		})
	}
	if err := c.checkIntra("Create"); err != nil {
		return nil, err
	}
	if c.world.checks {
		if err := c.agree("Create", plainCall(fmt.Sprintf("%d members", g.Size())), nil); err != nil {
			return nil, err
		}
	}
	d := c.heir()
	member, err := core.Create(&c.base, &d.base, g.core())
	return c.created("Create", d, member, err)
}

// CreateGroup creates a communicator of the members of g, which are ranks of c, in the order of g.
// Unlike with Create, only the members call CreateGroup, with the same group and tag; the other ranks
// of c take no part. The tag distinguishes calls that different goroutines make at the same time. With
// replicas, only one goroutine at a time may call CreateGroup on c. A rank that is not a member of g
// gets nil at once.
func (c *Comm) CreateGroup(g Group, tag int) (*Comm, error) {
	const op = "CreateGroup"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	if c.world.checks {
		core.Record(&c.base, core.GroupSlot, op, plainCall(fmt.Sprintf("%d members, tag %d", g.Size(), tag)))
	}
	d := c.heir()
	member, err := core.CreateGroup(&c.base, &d.base, g.core(), tag)
	return c.created(op, d, member, err)
}

// Free ends c: later calls on it fail with ErrComm. Sends and receives in progress still complete.
// Free calls the delete functions of the attributes; if one returns an error, c is not freed. All
// ranks of c call Free. The world and Self cannot be freed.
func (c *Comm) Free() error {
	return errorOf("Free", core.Free(c.core()))
}
