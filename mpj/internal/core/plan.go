package core

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// A Plan is a collective with its arguments. Run and Begin check a Plan once, and then carry it out.
//
// The operation of a reduction is not part of the Plan. A Plan contains buffers, which the engine
// gets, so the operation would not stay on the stack of a blocking call.
type Plan struct {
	kind       kind
	root       int
	send, recv Elements
	out, in    division // division of send and recv into blocks, as the program passes it
	items      *exchangedItems

	// prepare sets the fields below.
	inPlace        bool
	each           int // elements of every block, if the blocks are equal
	sent, received collective.Blocks
	from, to       []byte // contribution and result of this rank in a reduction
	exchange       *exchange
}

// A kind is a collective.
type kind byte

const (
	barrier kind = iota
	bcast
	gather
	gatherv
	scatter
	scatterv
	allgather
	allgatherv
	alltoall
	alltoallv
	alltoallw
	reduce
	allreduce
	reduceScatterBlock
	reduceScatter
	scan
	exscan
	neighborAllgather
	neighborAllgatherv
	neighborAlltoall
	neighborAlltoallv
)

// Run carries out p on c. op is the operation of a reduction.
func Run(c *Comm, call Call, p *Plan, op Op) error {
	if err := p.check(c, call, op); err != nil {
		return err
	}
	slot := uint32(CollectiveSlot)
	if p.exchange != nil {
		slot = NeighbourhoodSlot
	}
	t := teamOf(c, slot)
	return c.wrap(p.carryOut(&t, op))
}

// Begin is the nonblocking form of Run. The buffers belong to the request until it is complete.
func Begin(c *Comm, call Call, p *Plan, op Op) (*Request, error) {
	if err := p.check(c, call, op); err != nil {
		return nil, err
	}
	return start(c, call.Name, func(slot uint32) error {
		t := teamOf(c, slot)
		return p.carryOut(&t, op)
	}), nil
}

// check checks c and the arguments of p, and prepares p. With checks, it also compares the calls of
// all ranks.
func (p *Plan) check(c *Comm, call Call, op Op) error {
	if err := c.CheckIntra(); err != nil {
		return err
	}
	if p.kind >= neighborAllgather {
		if err := p.findNeighbours(c); err != nil {
			return err // all ranks fail in the same way
		}
	}
	err := p.prepare(c, op)
	if !c.process.checks {
		return err
	}
	if err == nil && p.reduces() {
		err = checkDivisible(c, op.reduction(), p.from)
	}
	return agreeOn(c, call.Name, p.describe(c, call), err)
}

// reduces reports whether p is a reduction.
func (p *Plan) reduces() bool { return p.kind >= reduce && p.kind <= exscan }

// prepare checks the arguments of p, and sets what carryOut needs.
func (p *Plan) prepare(c *Comm, op Op) error {
	switch p.kind {
	case barrier:
		return nil
	case bcast:
		return checkRoot(c, p.root)
	case gather, scatter:
		return p.prepareParts(c)
	case gatherv, scatterv:
		return p.prepareBlocks(c)
	case allgather:
		return p.prepareAllgather(c)
	case allgatherv:
		return p.prepareAllgatherv(c)
	case alltoall:
		return p.prepareAlltoall(c)
	case alltoallv:
		return p.prepareAlltoallv(c)
	case alltoallw:
		return p.items.check(c)
	case neighborAllgather, neighborAllgatherv, neighborAlltoall, neighborAlltoallv:
		return p.prepareExchange(c)
	}
	return p.prepareReduction(c, op)
}

// carryOut carries out p, which is prepared.
func (p *Plan) carryOut(t *collective.Team, op Op) error {
	switch p.kind {
	case barrier:
		return t.Barrier()
	case bcast:
		return t.Bcast(p.send.Bytes, p.root)
	case gather:
		return t.Gather(p.send.Bytes, p.recv.Bytes, p.received, p.root)
	case gatherv:
		return t.Gatherv(p.send.Bytes, p.recv.Bytes, p.received, p.root)
	case scatter:
		return t.Scatter(p.send.Bytes, p.sent, p.recv.Bytes, p.root)
	case scatterv:
		return t.Scatterv(p.send.Bytes, p.sent, p.recv.Bytes, p.root)
	case allgather, allgatherv:
		copy(p.to, p.send.Bytes)
		return t.Allgather(p.recv.Bytes, p.received)
	case alltoall, alltoallv:
		if p.inPlace {
			return t.AlltoallInPlace(p.recv.Bytes, p.received)
		}
		return t.Alltoall(p.send.Bytes, p.sent, p.recv.Bytes, p.received)
	case alltoallw:
		return p.items.carryOut(t)
	case neighborAllgather, neighborAllgatherv, neighborAlltoall, neighborAlltoallv:
		return p.exchange.carryOut(t)
	}
	return p.reduce(t, op.reduction())
}

// reduce carries out a reduction.
func (p *Plan) reduce(t *collective.Team, r collective.Reduction) error {
	switch p.kind {
	case reduce:
		return t.Reduce(p.from, p.to, r, p.root)
	case allreduce:
		return t.Allreduce(p.from, p.to, r)
	case exscan:
		return t.Exscan(p.from, p.to, r)
	case scan:
		copy(p.to, p.from)
		return t.Scan(p.to, r)
	}
	return t.ReduceScatter(p.from, p.received, p.to, r)
}

// describe describes p for the comparison with the calls of the other ranks. p need not be valid.
func (p *Plan) describe(c *Comm, call Call) calls.Call {
	k := calls.Call{Root: calls.None, Count: calls.None, Type: call.Type, Operation: call.Operation}
	switch p.kind {
	case bcast:
		k.Root, k.Count = p.root, p.send.Length
	case gather, scatter:
		k.Root, k.Count = p.root, p.each
	case gatherv, scatterv:
		p.describeBlocks(c, &k)
	case allgather, alltoall:
		k.Count, k.Place = p.each, placeOf(p.inPlace, p.each > 0)
	case allgatherv:
		k.Counts = p.in.counts
		k.Place = placeOf(p.inPlace, p.each > 0)
	case alltoallv:
		k.Out, k.In, k.Place = everyPart(p.sent.Counts), everyPart(p.received.Counts), placeOf(p.inPlace, true)
	case alltoallw:
		p.items.describe(&k)
	case reduce:
		k.Root, k.Count = p.root, p.each
	case reduceScatter:
		k.Counts, k.Place = p.in.counts, placeOf(p.inPlace, len(p.from) > 0)
	case allreduce, reduceScatterBlock, scan, exscan:
		k.Count, k.Place = p.each, placeOf(p.inPlace, p.each > 0)
	case neighborAllgather, neighborAllgatherv, neighborAlltoall, neighborAlltoallv:
		k.Out, k.In = edgeParts(p.exchange.out, p.exchange.send, p.recv.Unit), edgeParts(p.exchange.in, p.exchange.recv, p.recv.Unit)
	}
	return k
}
