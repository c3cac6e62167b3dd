package core

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Barrier returns the Plan that is complete when every rank carries it out.
func Barrier() *Plan { return &Plan{kind: barrier} }

// Bcast returns the Plan that copies root's buf to the buf of every rank.
func Bcast(buf Elements, root int) *Plan { return &Plan{kind: bcast, send: buf, root: root} }

// Gather returns the Plan that gathers send of all ranks, in rank order, into root's recv. At root,
// send may be null.
func Gather(send, recv Elements, root int) *Plan {
	return &Plan{kind: gather, send: send, recv: recv, root: root}
}

// Gatherv is Gather with blocks of different lengths, which are significant at root only.
func Gatherv(send, recv Elements, counts, displs []int, root int) *Plan {
	return &Plan{kind: gatherv, send: send, recv: recv, in: division{counts, displs}, root: root}
}

// Scatter returns the Plan that sends the i-th of equal parts of root's send to recv of rank i. At
// root, recv may be null.
func Scatter(send, recv Elements, root int) *Plan {
	return &Plan{kind: scatter, send: send, recv: recv, root: root}
}

// Scatterv is Scatter with blocks of different lengths, which are significant at root only.
func Scatterv(send Elements, counts, displs []int, recv Elements, root int) *Plan {
	return &Plan{kind: scatterv, send: send, out: division{counts, displs}, recv: recv, root: root}
}

// buffers returns the buffer of this rank's part and the buffer that is significant at root only,
// with their names.
func (p *Plan) buffers() (mine *Elements, mineName string, whole *Elements, wholeName string) {
	if p.kind == gather || p.kind == gatherv {
		return &p.send, "send", &p.recv, "recv"
	}
	return &p.recv, "recv", &p.send, "send"
}

// prepareParts prepares Gather and Scatter.
func (p *Plan) prepareParts(c *Comm) error {
	mine, mineName, whole, wholeName := p.buffers()
	p.each = mine.Length
	if err := checkRoot(c, p.root); err != nil {
		return err
	}
	if c.rank == p.root {
		switch {
		case mine.Null && whole.Length%c.size == 0:
			p.each = whole.Length / c.size
		case whole.Length != c.size*mine.Length:
			return c.Failf(ErrBuffer, "%s has %d elements and %s %d for %d ranks", mineName, mine.Length, wholeName, whole.Length, c.size)
		}
	}
	b := collective.Even(p.each * mine.Unit)
	p.sent, p.received = b, b
	return nil
}

// prepareBlocks prepares Gatherv and Scatterv. Only root has blocks.
func (p *Plan) prepareBlocks(c *Comm) error {
	if err := checkRoot(c, p.root); err != nil {
		return err
	}
	if c.rank != p.root {
		return nil
	}
	mine, mineName, whole, wholeName := p.buffers()
	d := p.in
	if p.kind == scatterv {
		d = p.out
	}
	b, err := d.among(c, wholeName, whole.Length)
	if err != nil {
		return err
	}
	p.sent, p.received = b.inBytes(whole.Unit), b.inBytes(whole.Unit)
	if !mine.Null && b.counts[p.root] != mine.Length {
		return c.Failf(ErrBuffer, "%s has %d elements, counts[%d] is %d", mineName, mine.Length, p.root, b.counts[p.root])
	}
	return nil
}

// describeBlocks describes a call in which root has a block for each rank, and each other rank has
// one block.
func (p *Plan) describeBlocks(c *Comm, k *calls.Call) {
	k.Root = p.root
	at, elsewhere := &k.Out, &k.In
	if p.kind == gatherv {
		at, elsewhere = elsewhere, at
	}
	if c.rank != p.root {
		mine, _, _, _ := p.buffers()
		*elsewhere = []calls.Part{{Rank: p.root, Count: mine.Length}}
		return
	}
	for i, n := range p.sent.Counts {
		if i != p.root {
			*at = append(*at, calls.Part{Rank: i, Count: n})
		}
	}
}
