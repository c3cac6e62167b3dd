package core

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Reduce returns the Plan that combines send of all ranks, element by element and in rank order, into
// root's recv. At root, a null send means that recv contains the contribution.
func Reduce(send, recv Elements, root int) *Plan {
	return &Plan{kind: reduce, send: send, recv: recv, root: root}
}

// Allreduce is Reduce with the result at every rank.
func Allreduce(send, recv Elements) *Plan { return &Plan{kind: allreduce, send: send, recv: recv} }

// ReduceScatterBlock returns the Plan that combines send of all ranks, and stores the i-th of equal
// parts of the result in recv of rank i. If send is null, recv contains the contribution, and its
// first part gets the result.
func ReduceScatterBlock(send, recv Elements) *Plan {
	return &Plan{kind: reduceScatterBlock, send: send, recv: recv}
}

// ReduceScatter is ReduceScatterBlock with contiguous parts of different lengths.
func ReduceScatter(send, recv Elements, counts []int) *Plan {
	return &Plan{kind: reduceScatter, send: send, recv: recv, in: division{counts: counts}}
}

// Scan returns the Plan that combines, at each rank, send of ranks 0 to that rank, in order, into
// recv.
func Scan(send, recv Elements) *Plan { return &Plan{kind: scan, send: send, recv: recv} }

// Exscan is Scan without the rank's own contribution. recv of rank 0 is unchanged.
func Exscan(send, recv Elements) *Plan { return &Plan{kind: exscan, send: send, recv: recv} }

// reduction returns o, which is valid, for algorithms.
func (o Op) reduction() collective.Reduction {
	return collective.Reduction{Size: o.Unit * o.Length, Combine: o.Combine}
}

// Fits returns an error if o is invalid, or if one of the lengths is not a multiple of the length of
// its items.
func (o Op) Fits(lengths ...int) *Error {
	if o.Null {
		return Failf(ErrOp, "op is nil")
	}
	if o.Length < 1 || o.Length > math.MaxInt/o.Unit {
		return Failf(ErrOp, "the operation's item length is %d elements", o.Length)
	}
	for _, l := range lengths {
		if l%o.Length != 0 {
			return Failf(ErrCount, "%d elements are not a multiple of the operation's item length %d", l, o.Length)
		}
	}
	return nil
}

// prepareReduction prepares a reduction with op.
func (p *Plan) prepareReduction(c *Comm, op Op) error {
	p.inPlace = p.send.Null
	var invalid *Error
	switch p.kind {
	case reduceScatter:
		if err := p.contributeBlocks(c); err != nil {
			return err
		}
		invalid = op.Fits(p.in.counts...)
	case reduceScatterBlock:
		if err := p.contributeParts(c); err != nil {
			return err
		}
		invalid = op.Fits(p.each)
	default:
		if err := p.contribute(c); err != nil {
			return err
		}
		invalid = op.Fits(p.each)
	}
	if invalid != nil {
		return c.own(invalid)
	}
	return nil
}

// contribute sets the contribution and the result of this rank in a reduction of whole vectors.
func (p *Plan) contribute(c *Comm) error {
	hasResult := true
	if p.kind == reduce {
		if err := checkRoot(c, p.root); err != nil {
			return err
		}
		hasResult = c.rank == p.root
	}
	v := p.send
	if hasResult && p.send.Null {
		v = p.recv
	} else if hasResult && p.recv.Length != p.send.Length {
		return c.Failf(ErrBuffer, "send has %d elements and recv %d", p.send.Length, p.recv.Length)
	}
	p.from, p.to, p.each = v.Bytes, p.recv.Bytes, v.Length
	return nil
}

// contributeParts is contribute for ReduceScatterBlock.
func (p *Plan) contributeParts(c *Comm) error {
	p.from, p.to, p.each = p.send.Bytes, p.recv.Bytes, p.recv.Length
	switch {
	case p.send.Null && p.recv.Length%c.size == 0:
		p.each /= c.size
		p.from, p.to = p.recv.Bytes, p.recv.Bytes[:p.each*p.recv.Unit]
	case p.send.Length != c.size*p.recv.Length:
		return c.Failf(ErrBuffer, "send has %d elements and recv %d for %d ranks", p.send.Length, p.recv.Length, c.size)
	}
	p.received = collective.Even(p.each * p.recv.Unit)
	return nil
}

// contributeBlocks is contribute for ReduceScatter.
func (p *Plan) contributeBlocks(c *Comm) error {
	whole := p.send
	if p.send.Null {
		whole = p.recv
	}
	b, err := p.in.among(c, "send", whole.Length)
	if err != nil {
		return err
	}
	if b.end() != whole.Length {
		return c.Failf(ErrCount, "send has %d elements, the counts add up to %d", whole.Length, b.end())
	}
	own := b.counts[c.rank]
	if !p.send.Null && own != p.recv.Length {
		return c.Failf(ErrBuffer, "recv has %d elements, counts[%d] is %d", p.recv.Length, c.rank, own)
	}
	p.from, p.to, p.received = whole.Bytes, p.recv.Bytes[:own*whole.Unit], b.inBytes(whole.Unit)
	return nil
}
