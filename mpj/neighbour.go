package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// Neighbourhood collectives exchange blocks along the edges of a topology. All
// ranks of the communicator call them in the same order.
//
//	CartTopology       per dimension: the rank below, then the one above
//	GraphTopology      GraphNeighbors; the graph has to be symmetric
//	DistGraphTopology  sources to receive from, destinations to send to
//
// At the edge of a grid the neighbour is ProcNull: there is a block for it,
// which is not sent, and not changed when receiving.

// NeighborAllgather sends send to every rank that this one has an edge to, and
// puts what comes along each edge into the block of recv for that edge. All
// blocks have the length of send.
func NeighborAllgather[T Element](c *Comm, send, recv []T) error {
	const op = "NeighborAllgather"
	in, out, err := c.edgesOf(op)
	if err != nil {
		return err
	}
	if len(recv) != len(in)*len(send) {
		return c.failf(ErrBuffer, op, "recv has %d elements for %d neighbours with %d each", len(recv), len(in), len(send))
	}
	return c.wrap(op, c.neighborhood(in, partsOf(recv, evenly(len(in), len(send))), out, repeated(send, len(out))))
}

// NeighborAllgatherv is NeighborAllgather with blocks of different lengths: what
// comes along edge i has counts[i] elements and goes to recv[displs[i]:]. With
// nil displs the blocks follow each other.
func NeighborAllgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	const op = "NeighborAllgatherv"
	in, out, err := c.edgesOf(op)
	if err != nil {
		return err
	}
	b, err := c.edgeBlocks(op, "recv", counts, displs, len(in), len(recv))
	if err != nil {
		return err
	}
	return c.wrap(op, c.neighborhood(in, partsOf(recv, b), out, repeated(send, len(out))))
}

// NeighborAlltoall divides send into as many equal blocks as this rank has edges
// to others, sends each along its edge, and puts what comes along each edge
// into the equal blocks of recv.
func NeighborAlltoall[T Element](c *Comm, send, recv []T) error {
	const op = "NeighborAlltoall"
	in, out, err := c.edgesOf(op)
	if err != nil {
		return err
	}
	if !divides(len(out), len(send)) || !divides(len(in), len(recv)) {
		return c.failf(ErrBuffer, op, "send has %d elements for %d neighbours and recv %d for %d", len(send), len(out), len(recv), len(in))
	}
	return c.wrap(op, c.neighborhood(in, partsOf(recv, shares(len(in), len(recv))), out, partsOf(send, shares(len(out), len(send)))))
}

// NeighborAlltoallv is NeighborAlltoall with blocks of different lengths: edge i
// gets sendCounts[i] elements of send[sendDispls[i]:], and what comes along
// edge j, recvCounts[j] elements, goes to recv[recvDispls[j]:]. With nil
// displacements the blocks follow each other.
func NeighborAlltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	const op = "NeighborAlltoallv"
	in, out, err := c.edgesOf(op)
	if err != nil {
		return err
	}
	from, err := c.edgeBlocks(op, "send", sendCounts, sendDispls, len(out), len(send))
	if err != nil {
		return err
	}
	to, err := c.edgeBlocks(op, "recv", recvCounts, recvDispls, len(in), len(recv))
	if err != nil {
		return err
	}
	return c.wrap(op, c.neighborhood(in, partsOf(recv, to), out, partsOf(send, from)))
}

// edgesOf returns the edges of this rank in the topology of c.
func (c *Comm) edgesOf(op string) (in, out []edge, err error) {
	if err := c.checkCollective(op); err != nil {
		return nil, nil, err
	}
	if c.topology == nil {
		return nil, nil, c.failf(ErrTopology, op, "communicator %q has none", c.Name())
	}
	if t, ok := c.topology.(*graph); ok && !t.symmetric {
		return nil, nil, c.failf(ErrTopology, op, "the graph has edges in one direction only")
	}
	in, out = c.topology.edges(c.rank)
	return in, out, nil
}

// edgeBlocks checks the arguments of op that describe the n blocks of a buffer.
func (c *Comm) edgeBlocks(op, buffer string, counts, displs []int, n, length int) (blocks, error) {
	if len(counts) != n || displs != nil && len(displs) != n {
		return blocks{}, c.failf(ErrCount, op, "%d counts and %d displacements of %s for %d neighbours", len(counts), len(displs), buffer, n)
	}
	b := blocks{counts, displs}
	if displs == nil {
		b = packed(counts)
	}
	for i, k := range b.counts {
		if k < 0 || b.displs[i] < 0 || b.displs[i] > length-k {
			return blocks{}, c.failf(ErrCount, op, "%s has %d elements, block of neighbour %d is %d from %d on", buffer, length, i, k, b.displs[i])
		}
	}
	return b, nil
}

// divides reports whether length elements can be shared by n neighbours.
func divides(n, length int) bool { return n == 0 && length == 0 || n > 0 && length%n == 0 }

// shares returns n equal blocks of length elements in all.
func shares(n, length int) blocks { return evenly(n, length/max(n, 1)) }

// partsOf returns the blocks of buf as bytes.
func partsOf[T Element](buf []T, b blocks) [][]byte {
	parts := make([][]byte, len(b.counts))
	for i := range parts {
		parts[i] = bytesOf(block(buf, b, i))
	}
	return parts
}

// repeated returns n times the bytes of buf.
func repeated[T Element](buf []T, n int) [][]byte {
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = bytesOf(buf)
	}
	return parts
}

// neighborhood exchanges blocks along edges: all receives are posted before
// anything is sent.
func (c *Comm) neighborhood(in []edge, recv [][]byte, out []edge, send [][]byte) error {
	context := c.context(neighbourhoodSlot)
	receives := make([]*engine.Request, len(in))
	for i, e := range in {
		if e.rank == ProcNull {
			continue
		}
		r, err := c.engine.Irecv(context, c.worldRank(e.rank), e.tag, recv[i])
		if err != nil {
			return err
		}
		receives[i] = r
	}
	var sends []*engine.Request
	for i, e := range out {
		if e.rank == ProcNull {
			continue
		}
		r, err := c.engine.Isend(context, c.worldRank(e.rank), e.tag, send[i], engine.Standard)
		if err != nil {
			return err
		}
		sends = append(sends, r)
	}
	return c.complete(in, recv, receives, sends)
}

// complete waits for all receives, whose lengths have to be those of their
// blocks, and all sends.
func (c *Comm) complete(in []edge, recv [][]byte, receives, sends []*engine.Request) error {
	for i, r := range receives {
		if r == nil {
			continue
		}
		s, err := c.engine.Wait(r)
		if err != nil {
			return err
		}
		if s.Size != len(recv[i]) {
			return fmt.Errorf("neighbour %d, rank %d, sent %d bytes where rank %d expects %d", i, in[i].rank, s.Size, c.rank, len(recv[i]))
		}
	}
	for _, r := range sends {
		if _, err := c.engine.Wait(r); err != nil {
			return err
		}
	}
	return nil
}
