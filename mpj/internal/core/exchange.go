package core

import (
	"cmp"
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// Neighbourhood collectives exchange blocks along the edges of a topology. All ranks of the
// communicator call them in the same order.
//
//	CartTopology       per dimension: the rank below, then the rank above
//	GraphTopology      GraphNeighbors; the graph must be symmetric
//	DistGraphTopology  sources to receive from, destinations to send to
//
// At the edge of a grid the neighbour is ProcNull. Its block is not sent, and a receive does not
// change it.

// NeighborAllgather returns the Plan that sends send along every outgoing edge, and stores the data
// received along each edge in the block of recv for that edge. All blocks have the length of send.
func NeighborAllgather(send, recv Elements) *Plan {
	return &Plan{kind: neighborAllgather, send: send, recv: recv}
}

// NeighborAllgatherv is NeighborAllgather with blocks of different lengths.
func NeighborAllgatherv(send, recv Elements, counts, displs []int) *Plan {
	return &Plan{kind: neighborAllgatherv, send: send, recv: recv, in: division{counts, displs}}
}

// NeighborAlltoall returns the Plan that sends one of equal blocks of send along each outgoing edge,
// and stores the data received along each edge in its block of recv.
func NeighborAlltoall(send, recv Elements) *Plan {
	return &Plan{kind: neighborAlltoall, send: send, recv: recv}
}

// NeighborAlltoallv is NeighborAlltoall with blocks of different lengths.
func NeighborAlltoallv(send Elements, sendCounts, sendDispls []int, recv Elements, recvCounts, recvDispls []int) *Plan {
	return &Plan{kind: neighborAlltoallv, send: send, out: division{sendCounts, sendDispls}, recv: recv, in: division{recvCounts, recvDispls}}
}

// An exchange is this rank's part of a neighbourhood collective, with one block for each edge.
type exchange struct {
	in, out    []edge
	recv, send [][]byte
}

// findNeighbours sets the edges of the exchange of p. It returns an error if c has no topology that
// supports an exchange.
func (p *Plan) findNeighbours(c *Comm) error {
	if c.topology == nil {
		return c.Failf(ErrTopology, "communicator %q has no topology", c.Name())
	}
	if t, ok := c.topology.(*graph); ok && !t.symmetric {
		return c.Failf(ErrTopology, "the graph has edges in one direction only")
	}
	p.exchange = new(exchange)
	p.exchange.in, p.exchange.out = c.topology.edges(c.rank)
	return nil
}

// prepareExchange sets the blocks of the exchange of p.
func (p *Plan) prepareExchange(c *Comm) error {
	x, out, in := p.exchange, p.out, p.in
	n, m := len(x.out), len(x.in)
	var err error
	switch p.kind {
	case neighborAllgather:
		if p.recv.Length != m*p.send.Length {
			return c.Failf(ErrBuffer, "recv has %d elements for %d neighbours with %d each", p.recv.Length, m, p.send.Length)
		}
		in = evenly(m, p.send.Length)
	case neighborAlltoall:
		if !divides(n, p.send.Length) || !divides(m, p.recv.Length) {
			return c.Failf(ErrBuffer, "send has %d elements for %d neighbours and recv %d for %d", p.send.Length, n, p.recv.Length, m)
		}
		out, in = evenly(n, p.send.Length/max(n, 1)), evenly(m, p.recv.Length/max(m, 1))
	case neighborAlltoallv:
		if out, err = out.check(c, "send", p.send.Length, n, "neighbour"); err != nil {
			return err
		}
		fallthrough
	case neighborAllgatherv:
		if in, err = in.check(c, "recv", p.recv.Length, m, "neighbour"); err != nil {
			return err
		}
	}
	if out.counts == nil { // every neighbour gets all of send
		out = division{counts: filled(n, p.send.Length), displs: make([]int, n)}
	}
	x.send, x.recv = out.parts(p.send), in.parts(p.recv)
	return nil
}

// divides reports whether length elements can be divided equally among n neighbours.
func divides(n, length int) bool { return n == 0 && length == 0 || n > 0 && length%n == 0 }

// parts returns the blocks of v.
func (d division) parts(v Elements) [][]byte {
	parts := make([][]byte, len(d.counts))
	for i := range parts {
		parts[i] = d.of(v.Bytes, i, v.Unit)
	}
	return parts
}

// edgeParts returns the parts exchanged along edges, in blocks of elements of the given size.
func edgeParts(edges []edge, blocks [][]byte, size int) []calls.Part {
	var parts []calls.Part
	for i, e := range edges {
		if e.rank != ProcNull && i < len(blocks) {
			parts = append(parts, calls.Part{Rank: e.rank, Tag: int(e.tag), Count: len(blocks[i]) / size})
		}
	}
	return parts
}

// carryOut exchanges the blocks of x. It posts all receives before it sends. If a block cannot
// be sent, it still sends the others and completes all receives, so that no receive into the
// caller's buffer stays posted.
func (x *exchange) carryOut(t *collective.Team) error {
	receives, sends := make([]*engine.Request, len(x.in)), make([]*engine.Request, len(x.out))
	for i, e := range x.in {
		if e.rank == ProcNull {
			continue
		}
		r, err := t.Engine.Irecv(t.Context, worldRank(t, e.rank), e.tag, x.recv[i])
		if err != nil {
			return err
		}
		receives[i] = r
	}
	var unsent error
	for i, e := range x.out {
		if e.rank == ProcNull {
			continue
		}
		r, err := t.Engine.Isend(t.Context, worldRank(t, e.rank), e.tag, x.send[i], engineapi.Standard)
		if err != nil { // unless the engine has stopped, the payload is too long; an empty message tells the receiver
			unsent = cmp.Or(unsent, err)
			r, _ = t.Engine.Isend(t.Context, worldRank(t, e.rank), e.tag, nil, engineapi.Standard)
		}
		sends[i] = r
	}
	return x.complete(t, receives, sends, unsent)
}

// complete waits for all receives and sends. Each received message must have the length of its
// block. After a wrong length, complete still waits for the other receives, so that no receive stays
// posted for messages of the next exchange. wrong is an earlier error, which takes precedence, or
// nil. Only the end of the engine ends the wait early.
func (x *exchange) complete(t *collective.Team, receives, sends []*engine.Request, wrong error) error {
	for i, r := range receives {
		if r == nil {
			continue
		}
		s, err := t.Engine.Wait(r)
		var long *engineapi.TruncateError
		if err != nil && !errors.As(err, &long) {
			return err
		}
		if s.Size != len(x.recv[i]) && wrong == nil {
			wrong = &collective.MismatchError{From: x.in[i].rank, To: t.Rank, Got: s.Size, Want: len(x.recv[i])}
		}
	}
	for _, r := range sends {
		if r == nil {
			continue
		}
		if _, err := t.Engine.Wait(r); err != nil {
			return err
		}
	}
	return wrong
}

// worldRank returns the world rank of a rank of t.
func worldRank(t *collective.Team, rank int) int {
	if t.World == nil {
		return rank
	}
	return t.World[rank]
}
