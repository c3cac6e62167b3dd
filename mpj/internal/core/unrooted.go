package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/collective"

// Allgather returns the Plan that gathers send of all ranks, in rank order, into recv of every rank.
// If send is null, this rank's contribution is already in recv.
func Allgather(send, recv Elements) *Plan { return &Plan{kind: allgather, send: send, recv: recv} }

// Allgatherv is Allgather with blocks of different lengths.
func Allgatherv(send, recv Elements, counts, displs []int) *Plan {
	return &Plan{kind: allgatherv, send: send, recv: recv, in: division{counts, displs}}
}

// Alltoall returns the Plan that sends the j-th of equal parts of send to rank j, and stores the part
// from rank i as the i-th part of recv. If send is null, the parts of recv are exchanged in place.
func Alltoall(send, recv Elements) *Plan { return &Plan{kind: alltoall, send: send, recv: recv} }

// Alltoallv is Alltoall with parts of different lengths. If send is null and sendCounts is nil, the
// parts of recv are exchanged in place.
func Alltoallv(send Elements, sendCounts, sendDispls []int, recv Elements, recvCounts, recvDispls []int) *Plan {
	return &Plan{kind: alltoallv, send: send, out: division{sendCounts, sendDispls}, recv: recv, in: division{recvCounts, recvDispls}}
}

func (p *Plan) prepareAllgather(c *Comm) error {
	p.each, p.inPlace = p.send.Length, p.send.Null
	switch {
	case p.send.Null && p.recv.Length%c.size == 0:
		p.each = p.recv.Length / c.size
	case p.recv.Length != c.size*p.send.Length:
		return c.Failf(ErrBuffer, "recv has %d elements for %d ranks with %d each", p.recv.Length, c.size, p.send.Length)
	}
	own := p.each * p.recv.Unit
	p.received, p.to = collective.Even(own), p.recv.Bytes[c.rank*own:(c.rank+1)*own]
	return nil
}

func (p *Plan) prepareAllgatherv(c *Comm) error {
	p.inPlace = p.send.Null
	b, err := p.in.among(c, "recv", p.recv.Length)
	if err != nil {
		return err
	}
	if !p.send.Null && b.counts[c.rank] != p.send.Length {
		return c.Failf(ErrBuffer, "send has %d elements, counts[%d] is %d", p.send.Length, c.rank, b.counts[c.rank])
	}
	p.each = b.counts[c.rank]
	p.received, p.to = b.inBytes(p.recv.Unit), b.of(p.recv.Bytes, c.rank, p.recv.Unit)
	return nil
}

func (p *Plan) prepareAlltoall(c *Comm) error {
	p.each, p.inPlace = p.recv.Length/c.size, p.send.Null
	if !p.send.Null && p.send.Length != p.recv.Length || p.recv.Length%c.size != 0 {
		return c.Failf(ErrBuffer, "send has %d elements and recv %d for %d ranks", p.send.Length, p.recv.Length, c.size)
	}
	if p.send.Length > 0 && &p.send.Bytes[0] == &p.recv.Bytes[0] {
		return c.Failf(ErrBuffer, "send and recv are the same: pass nil as send at all ranks")
	}
	p.sent, p.received = collective.Even(p.each*p.recv.Unit), collective.Even(p.each*p.recv.Unit)
	return nil
}

func (p *Plan) prepareAlltoallv(c *Comm) error {
	p.inPlace = p.send.Null && p.out.counts == nil
	in, err := p.in.among(c, "recv", p.recv.Length)
	if err != nil {
		return err
	}
	if p.inPlace {
		p.sent, p.received = in.inBytes(p.recv.Unit), in.inBytes(p.recv.Unit)
		return nil
	}
	out, err := p.out.among(c, "send", p.send.Length)
	if err != nil {
		return err
	}
	if out.counts[c.rank] != in.counts[c.rank] {
		return c.Failf(ErrCount, "rank %d sends itself %d elements and expects %d", c.rank, out.counts[c.rank], in.counts[c.rank])
	}
	p.sent, p.received = out.inBytes(p.send.Unit), in.inBytes(p.recv.Unit)
	return nil
}
