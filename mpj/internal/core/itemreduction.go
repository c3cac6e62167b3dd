package core

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// Reductions of items of datatypes. Messages contain packed items, so they have no gaps, and a
// result leaves the gaps of its buffer unchanged.

// An ItemOp is an operation on items of a datatype.
type ItemOp struct {
	Combine func(in, inout []byte) // combines items that lie Extent bytes apart
	Extent  int
	Invalid error // why the program's operation cannot be used, or nil
}

// An Items is a buffer argument of a reduction of items.
type Items struct {
	Buffer
	Null    bool  // whether the program passes no items; as items to send, it means MPI_IN_PLACE
	Invalid error // why the items cannot be used, unless they may be null, or nil
}

// Fits returns why o cannot combine items of a datatype, or nil. The extents must be equal, and the
// data of an item must lie within its extent.
func (o ItemOp) Fits(of *layout.Layout) *Error {
	if of.Extent() != o.Extent {
		return Wrap(ErrOp, fmt.Errorf("an item of the datatype has an extent of %d bytes, and an item of the operation has %d", of.Extent(), o.Extent))
	}
	if low, high := of.TrueLB(), of.TrueLB()+of.TrueExtent(); low < 0 || high > o.Extent {
		return Wrap(ErrOp, fmt.Errorf("an item of the datatype has data at bytes %d to %d, outside its extent of %d bytes", low, high-1, o.Extent))
	}
	return nil
}

// reduction returns o as an operation on packed items of a datatype that fits o.
func (o ItemOp) reduction(of *layout.Layout) collective.Reduction {
	size := max(of.Size(), 1) // without data, vectors are empty
	if _, n, ok := of.Run(1); ok && n == o.Extent {
		return collective.Reduction{Size: size, Combine: o.Combine}
	}
	return collective.Reduction{Size: size, Combine: func(in, inout []byte) { o.combinePacked(of, in, inout) }}
}

// combinePacked unpacks the items of in and inout, combines them, and packs the result into inout.
func (o ItemOp) combinePacked(of *layout.Layout, in, inout []byte) {
	count := len(in) / of.Size()
	length := count * o.Extent
	items, scratch := TakeScratch(2 * length)
	clear(items)
	lower, upper := items[:length], items[length:]
	of.Unpack(lower, 0, count, in)
	of.Unpack(upper, 0, count, inout)
	o.Combine(lower, upper)
	of.Append(inout[:0], upper, 0, count)
	scratch.Put()
}

// ReduceLocal combines in with inout into inout, item by item. o fits both datatypes, and both
// buffers have the same count of items of the same size.
func (o ItemOp) ReduceLocal(in, inout Buffer) {
	lower, packedLower := in.Message()
	result, packed := inout.Message()
	if len(result) > 0 {
		o.reduction(inout.Type).Combine(lower, result)
	}
	if packed != nil {
		inout.Unpack(result)
	}
	packedLower.Put()
	packed.Put()
}

// An ItemReduction is a reduction of items of datatypes with its arguments. Run and Begin check it
// once, and then carry it out.
type ItemReduction struct {
	kind   kind
	op     ItemOp
	root   int
	counts []int // of ReduceScatter: items of each rank's part

	from, to Items // contribution and result of this rank
	inPlace  bool
	blocks   collective.Blocks
}

// ReduceItems is Reduce for items of datatypes.
func ReduceItems(send, recv Items, op ItemOp, root int) ItemReduction {
	return ItemReduction{kind: reduce, op: op, root: root, from: send, to: recv}
}

// AllreduceItems is Allreduce for items of datatypes.
func AllreduceItems(send, recv Items, op ItemOp) ItemReduction {
	return ItemReduction{kind: allreduce, op: op, from: send, to: recv}
}

// ScanItems is Scan for items of datatypes.
func ScanItems(send, recv Items, op ItemOp) ItemReduction {
	return ItemReduction{kind: scan, op: op, from: send, to: recv}
}

// ExscanItems is Exscan for items of datatypes.
func ExscanItems(send, recv Items, op ItemOp) ItemReduction {
	return ItemReduction{kind: exscan, op: op, from: send, to: recv}
}

// ReduceScatterBlockItems is ReduceScatterBlock for items of datatypes.
func ReduceScatterBlockItems(send, recv Items, op ItemOp) ItemReduction {
	return ItemReduction{kind: reduceScatterBlock, op: op, from: send, to: recv}
}

// ReduceScatterItems is ReduceScatter for items of datatypes.
func ReduceScatterItems(send, recv Items, counts []int, op ItemOp) ItemReduction {
	return ItemReduction{kind: reduceScatter, op: op, counts: counts, from: send, to: recv}
}

// Run carries out x on c.
func (x ItemReduction) Run(c *Comm, call Call) error {
	if err := x.check(c, call); err != nil {
		return err
	}
	t := teamOf(c, CollectiveSlot)
	return c.wrap(x.carryOut(&t))
}

// Begin is the nonblocking form of Run. The buffers belong to the request until it is complete.
func (x ItemReduction) Begin(c *Comm, call Call) (*Request, error) {
	if err := x.check(c, call); err != nil {
		return nil, err
	}
	return start(c, call.Name, func(slot uint32) error {
		t := teamOf(c, slot)
		return x.carryOut(&t)
	}), nil
}

// carryOut combines the packed items and unpacks the result.
func (x *ItemReduction) carryOut(t *collective.Team) error {
	in, packed := x.from.Message()
	out, room := x.to.Room()
	if err := x.combine(t, in, out); err != nil { // after an error the engine may still use the scratches
		return err
	}
	if room != nil && !(x.kind == exscan && t.Rank == 0) {
		x.to.Unpack(out)
	}
	packed.Put()
	room.Put()
	return nil
}

func (x *ItemReduction) combine(t *collective.Team, in, out []byte) error {
	p := Plan{kind: x.kind, root: x.root, from: in, to: out, received: x.blocks}
	return p.reduce(t, x.op.reduction(x.from.Type))
}

// check checks the arguments of x, and sets the contribution and the result of this rank.
func (x *ItemReduction) check(c *Comm, call Call) error {
	if err := c.CheckIntra(); err != nil {
		return err
	}
	err := x.place(c)
	if !c.process.checks {
		return err
	}
	if err == nil {
		b, packed := x.from.Message()
		err = checkDivisible(c, x.op.reduction(x.from.Type), b)
		packed.Put()
	}
	return agreeOn(c, call.Name, x.describe(call), err)
}

// noItems is the datatype of the result of a rank that gets none.
var noItems = new(layout.Layout)

// place sets the contribution, the result and the blocks of x, and returns an error if they do not
// fit each other.
func (x *ItemReduction) place(c *Comm) error {
	hasResult := true
	if x.kind == reduce {
		if err := checkRoot(c, x.root); err != nil {
			return err
		}
		hasResult = c.rank == x.root
	}
	if x.inPlace = hasResult && x.from.Null; x.inPlace {
		x.from = x.to
	}
	if x.op.Invalid != nil {
		return x.op.Invalid
	}
	if err := x.combines(c, x.from); err != nil {
		return err
	}
	if !hasResult {
		x.to = Items{Buffer: Buffer{Type: noItems}}
		return nil
	}
	if err := x.combines(c, x.to); err != nil {
		return err
	}
	if x.kind == reduceScatter || x.kind == reduceScatterBlock {
		return x.divide(c)
	}
	if x.from.Count != x.to.Count || x.from.Type.Size() != x.to.Type.Size() {
		return c.Failf(ErrBuffer, "send has %d items of %d bytes and recv %d of %d", x.from.Count, x.from.Type.Size(), x.to.Count, x.to.Type.Size())
	}
	return nil
}

// combines returns an error unless x can combine the items of y.
func (x *ItemReduction) combines(c *Comm, y Items) error {
	if y.Invalid != nil {
		return y.Invalid
	}
	if err := x.op.Fits(y.Type); err != nil {
		return c.own(err)
	}
	return nil
}

// divide sets the blocks of a ReduceScatter and, in place, the part of recv that gets the result.
func (x *ItemReduction) divide(c *Comm) error {
	size := x.from.Type.Size()
	if x.kind == reduceScatterBlock {
		each := x.from.Count / c.size
		if x.from.Count != each*c.size {
			return c.Failf(ErrBuffer, "send has %d items for %d ranks", x.from.Count, c.size)
		}
		x.blocks = collective.Even(each * size)
		return x.fill(c, each)
	}
	b, err := division{counts: x.counts}.among(c, "send", x.from.Count)
	if err != nil {
		return err
	}
	if b.end() != x.from.Count {
		return c.Failf(ErrCount, "send has %d items, the counts add up to %d", x.from.Count, b.end())
	}
	x.blocks = b.inBytes(size)
	return x.fill(c, b.counts[c.rank])
}

// fill checks that the result, of count items, fills recv. In place, it fills the first items.
func (x *ItemReduction) fill(c *Comm, count int) error {
	if x.inPlace {
		x.to.Count = count
	}
	if x.to.Count != count || x.to.Type.Size() != x.from.Type.Size() {
		return c.Failf(ErrBuffer, "recv has %d items of %d bytes, its part of send has %d of %d", x.to.Count, x.to.Type.Size(), count, x.from.Type.Size())
	}
	return nil
}

// describe describes x for a comparison with the calls of the other ranks.
func (x *ItemReduction) describe(call Call) calls.Call {
	k := calls.Call{Root: calls.None, Count: x.from.Count, Counts: x.counts, Operation: call.Operation}
	if x.from.Type != nil {
		k.Type = fmt.Sprintf("items of %d bytes", x.from.Type.Size())
	}
	if x.kind == reduce {
		k.Root = x.root
	} else {
		k.Place = placeOf(x.inPlace, x.from.Count > 0)
	}
	return k
}
