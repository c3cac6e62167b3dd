package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// Reductions of items of datatypes. Messages contain packed items, so they have no gaps, and a
// result leaves the gaps of its buffer unchanged.

// ReduceTyped is Reduce for items of datatypes: op combines the items of send of all ranks, in rank
// order, into root's recv. At other ranks recv is not used and may be the zero Typed. At root, a zero
// Typed as send has the meaning of MPI_IN_PLACE. The datatypes of all ranks have the same sequence of
// elements.
func ReduceTyped(c *Comm, send, recv Typed, op TypedOp, root int) error {
	return typedReduction{kind: collective.Reduce, op: op, root: root}.now(c, "ReduceTyped", send, recv)
}

// IreduceTyped is the nonblocking form of ReduceTyped.
func IreduceTyped(c *Comm, send, recv Typed, op TypedOp, root int) (*Request, error) {
	return typedReduction{kind: collective.Reduce, op: op, root: root}.later(c, "IreduceTyped", send, recv)
}

// AllreduceTyped is ReduceTyped with the result at every rank. If send is the zero Typed, the items
// of recv are combined.
func AllreduceTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return typedReduction{kind: collective.Allreduce, op: op}.now(c, "AllreduceTyped", send, recv)
}

// IallreduceTyped is the nonblocking form of AllreduceTyped.
func IallreduceTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return typedReduction{kind: collective.Allreduce, op: op}.later(c, "IallreduceTyped", send, recv)
}

// ScanTyped is Scan for items of datatypes.
func ScanTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return typedReduction{kind: collective.Scan, op: op}.now(c, "ScanTyped", send, recv)
}

// IscanTyped is the nonblocking form of ScanTyped.
func IscanTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return typedReduction{kind: collective.Scan, op: op}.later(c, "IscanTyped", send, recv)
}

// ExscanTyped is Exscan for items of datatypes. recv of rank 0 is unchanged.
func ExscanTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return typedReduction{kind: collective.Scan, op: op, exclusive: true}.now(c, "ExscanTyped", send, recv)
}

// IexscanTyped is the nonblocking form of ExscanTyped.
func IexscanTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return typedReduction{kind: collective.Scan, op: op, exclusive: true}.later(c, "IexscanTyped", send, recv)
}

// ReduceScatterBlockTyped is ReduceScatterBlock for items of datatypes: send has Size() times the
// items of recv.
func ReduceScatterBlockTyped(c *Comm, send, recv Typed, op TypedOp) error {
	return typedReduction{kind: collective.ReduceScatter, op: op}.now(c, "ReduceScatterBlockTyped", send, recv)
}

// IreduceScatterBlockTyped is the nonblocking form of ReduceScatterBlockTyped.
func IreduceScatterBlockTyped(c *Comm, send, recv Typed, op TypedOp) (*Request, error) {
	return typedReduction{kind: collective.ReduceScatter, op: op}.later(c, "IreduceScatterBlockTyped", send, recv)
}

// ReduceScatterTyped is ReduceScatter for items of datatypes: the part of rank i has counts[i] items.
func ReduceScatterTyped(c *Comm, send, recv Typed, counts []int, op TypedOp) error {
	return typedReduction{kind: collective.ReduceScatter, op: op, uneven: true, counts: counts}.now(c, "ReduceScatterTyped", send, recv)
}

// IreduceScatterTyped is the nonblocking form of ReduceScatterTyped.
func IreduceScatterTyped(c *Comm, send, recv Typed, counts []int, op TypedOp) (*Request, error) {
	return typedReduction{kind: collective.ReduceScatter, op: op, uneven: true, counts: counts}.later(c, "IreduceScatterTyped", send, recv)
}

// ReduceLocalTyped is ReduceLocal for items of datatypes.
func ReduceLocalTyped(in, inout Typed, op TypedOp) error {
	const call = "ReduceLocalTyped"
	if err := op.usable(call); err != nil {
		return err
	}
	for _, x := range []Typed{in, inout} {
		if err := x.usable(call); err != nil {
			return err
		}
		if err := op.fits(x.buffer.Type); err != nil {
			return fault(call, core.Wrap(core.ErrOp, err))
		}
	}
	if in.buffer.Count != inout.buffer.Count || in.Size() != inout.Size() {
		return failf(ErrBuffer, call, "in has %d items of %d bytes and inout %d of %d", in.buffer.Count, in.buffer.Type.Size(), inout.buffer.Count, inout.buffer.Type.Size())
	}
	lower, packedLower := in.buffer.Message()
	result, packed := inout.buffer.Message()
	if len(result) > 0 {
		op.reduction(inout.buffer.Type).Combine(lower, result)
	}
	if packed != nil {
		inout.buffer.Unpack(result)
	}
	packedLower.Put()
	packed.Put()
	return nil
}

// A typedReduction is a reduction of items of datatypes.
type typedReduction struct {
	kind      collective.Operation
	op        TypedOp
	root      int
	exclusive bool  // Exscan instead of Scan
	uneven    bool  // ReduceScatter with counts
	counts    []int // items of each rank's part, if uneven

	from, to Typed // contribution and result of this rank
	result   bool  // whether this rank gets a result; if not, to is empty
	inPlace  bool
	blocks   collective.Blocks
}

// now carries out x.
func (x typedReduction) now(c *Comm, call string, send, recv Typed) error {
	if err := x.check(c, call, send, recv); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap(call, x.carryOut(&t))
}

// later carries out x while the program continues.
func (x typedReduction) later(c *Comm, call string, send, recv Typed) (*Request, error) {
	if err := x.check(c, call, send, recv); err != nil {
		return nil, err
	}
	return c.background(call, func(t *collective.Team) error { return x.carryOut(t) })
}

// carryOut combines the packed items and unpacks the result.
func (x *typedReduction) carryOut(t *collective.Team) error {
	in, packed := x.from.buffer.Message()
	out, room := x.to.buffer.Room()
	if err := x.combine(t, in, out); err != nil { // after an error the engine may still use the scratches
		return err
	}
	if room != nil && !(x.exclusive && t.Rank == 0) {
		x.to.buffer.Unpack(out)
	}
	packed.Put()
	room.Put()
	return nil
}

func (x *typedReduction) combine(t *collective.Team, in, out []byte) error {
	r := x.op.reduction(x.from.buffer.Type)
	switch x.kind {
	case collective.Reduce:
		return t.Reduce(in, out, r, x.root)
	case collective.Allreduce:
		return t.Allreduce(in, out, r)
	case collective.ReduceScatter:
		return t.ReduceScatter(in, x.blocks, out, r)
	}
	if x.exclusive {
		return t.Exscan(in, out, r)
	}
	copy(out, in)
	return t.Scan(out, r)
}

// check checks the arguments of x, and sets the contribution and the result of this rank.
func (x *typedReduction) check(c *Comm, call string, send, recv Typed) error {
	if err := c.checkIntra(call); err != nil {
		return err
	}
	err := x.place(c, call, send, recv)
	if !c.world.checks {
		return err
	}
	if err == nil {
		b, packed := x.from.buffer.Message()
		err = c.checkDivisible(call, x.op.reduction(x.from.buffer.Type), b)
		packed.Put()
	}
	return c.agree(call, x.call(), err)
}

// place sets the contribution, the result and the blocks of x, and returns an error if they do not
// fit each other.
func (x *typedReduction) place(c *Comm, call string, send, recv Typed) error {
	x.result = true
	if x.kind == collective.Reduce {
		if err := c.checkRoot(call, x.root); err != nil {
			return err
		}
		x.result = c.Rank() == x.root
	}
	x.from, x.to, x.inPlace = send, recv, x.result && send.buffer.Type == nil && send.err == nil
	if x.inPlace {
		x.from = recv
	}
	if err := x.op.usable(call); err != nil {
		return c.handle(err)
	}
	if err := x.combines(c, call, x.from); err != nil {
		return err
	}
	if !x.result {
		x.to = Typed{buffer: core.Buffer{Type: noLayout}}
		return nil
	}
	if err := x.combines(c, call, x.to); err != nil {
		return err
	}
	if x.kind == collective.ReduceScatter {
		return x.divide(c, call)
	}
	if x.from.buffer.Count != x.to.buffer.Count || x.from.buffer.Type.Size() != x.to.buffer.Type.Size() {
		return c.failf(ErrBuffer, call, "send has %d items of %d bytes and recv %d of %d", x.from.buffer.Count, x.from.buffer.Type.Size(), x.to.buffer.Count, x.to.buffer.Type.Size())
	}
	return nil
}

// combines returns an error unless x can combine the items of y.
func (x *typedReduction) combines(c *Comm, call string, y Typed) error {
	if err := y.check(c, call); err != nil {
		return err
	}
	if err := x.op.fits(y.buffer.Type); err != nil {
		return c.handle(fault(call, core.Wrap(core.ErrOp, err)))
	}
	return nil
}

// divide sets the blocks of a ReduceScatter and, in place, the part of recv that gets the result.
func (x *typedReduction) divide(c *Comm, call string) error {
	size := x.from.buffer.Type.Size()
	if x.uneven {
		b, err := c.blocksOf(call, "send", x.counts, nil, x.from.buffer.Count)
		if err != nil {
			return err
		}
		if last := c.Size() - 1; b.displs[last]+b.counts[last] != x.from.buffer.Count {
			return c.failf(ErrCount, call, "send has %d items, the counts add up to %d", x.from.buffer.Count, b.displs[last]+b.counts[last])
		}
		x.blocks = collective.Blocks{Unit: size, Counts: b.counts, Displs: b.displs}
		return x.fill(c, call, b.counts[c.Rank()])
	}
	each := x.from.buffer.Count / c.Size()
	if x.from.buffer.Count != each*c.Size() {
		return c.failf(ErrBuffer, call, "send has %d items for %d ranks", x.from.buffer.Count, c.Size())
	}
	x.blocks = collective.Even(each * size)
	return x.fill(c, call, each)
}

// fill checks that the result, of count items, fills recv. In place, it fills the first items.
func (x *typedReduction) fill(c *Comm, call string, count int) error {
	if x.inPlace {
		x.to.buffer.Count = count
	}
	if x.to.buffer.Count != count || x.to.buffer.Type.Size() != x.from.buffer.Type.Size() {
		return c.failf(ErrBuffer, call, "recv has %d items of %d bytes, its part of send has %d of %d", x.to.buffer.Count, x.to.buffer.Type.Size(), count, x.from.buffer.Type.Size())
	}
	return nil
}

// call describes x for a comparison with the calls of the other ranks.
func (x *typedReduction) call() calls.Call {
	k := calls.Call{Root: calls.None, Count: x.from.buffer.Count, Counts: x.counts, Operation: x.op.name()}
	if x.from.buffer.Type != nil {
		k.Type = fmt.Sprintf("items of %d bytes", x.from.buffer.Type.Size())
	}
	switch {
	case x.kind == collective.Reduce:
		k.Root = x.root
	case x.from.buffer.Count == 0:
	case x.inPlace:
		k.Place = calls.InPlace
	default:
		k.Place = calls.Apart
	}
	return k
}
