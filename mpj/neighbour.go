package mpj

// Neighbourhood collectives exchange blocks along the edges of a topology. All
// ranks of the communicator call them in the same order.
//
//	CartTopology       per dimension: the rank below, then the rank above
//	GraphTopology      GraphNeighbors; the graph must be symmetric
//	DistGraphTopology  sources to receive from, destinations to send to
//
// At the edge of a grid the neighbour is ProcNull. Its block is not sent, and a receive does not
// change it.

// NeighborAllgather sends send to every rank to which this rank has an edge, and stores the data
// received along each edge in the block of recv for that edge. All blocks have the length of send.
func NeighborAllgather[T Element](c *Comm, send, recv []T) error {
	const op = "NeighborAllgather"
	x, err := neighborAllgather(c, op, send, recv)
	return c.now(op, x, err)
}

// IneighborAllgather is the nonblocking form of NeighborAllgather. The buffers belong to the
// request until it is complete.
func IneighborAllgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	const op = "IneighborAllgather"
	x, err := neighborAllgather(c, op, send, recv)
	return c.later(op, x, err)
}

func neighborAllgather[T Element](c *Comm, op string, send, recv []T) (*exchange, error) {
	x, err := newExchange[T](c, op)
	if err != nil {
		return nil, err
	}
	if len(recv) != len(x.in)*len(send) {
		return x, c.failf(ErrBuffer, op, "recv has %d elements for %d neighbours with %d each", len(recv), len(x.in), len(send))
	}
	x.send, x.recv = repeated(send, len(x.out)), partsOf(recv, evenly(len(x.in), len(send)))
	return x, nil
}

// NeighborAllgatherv is NeighborAllgather with blocks of different lengths: the counts[i] elements
// received along edge i are stored at recv[displs[i]:]. With nil displs the blocks are contiguous.
func NeighborAllgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	const op = "NeighborAllgatherv"
	x, err := neighborAllgatherv(c, op, send, recv, counts, displs)
	return c.now(op, x, err)
}

// IneighborAllgatherv is the nonblocking form of NeighborAllgatherv. The buffers belong to the
// request until it is complete.
func IneighborAllgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	const op = "IneighborAllgatherv"
	x, err := neighborAllgatherv(c, op, send, recv, counts, displs)
	return c.later(op, x, err)
}

func neighborAllgatherv[T Element](c *Comm, op string, send, recv []T, counts, displs []int) (*exchange, error) {
	x, err := newExchange[T](c, op)
	if err != nil {
		return nil, err
	}
	b, err := c.edgeBlocks(op, "recv", counts, displs, len(x.in), len(recv))
	if err != nil {
		return x, err
	}
	x.send, x.recv = repeated(send, len(x.out)), partsOf(recv, b)
	return x, nil
}

// NeighborAlltoall divides send into equal blocks, one for each outgoing edge, and recv into equal
// blocks, one for each incoming edge. It sends each block of send along its edge, and stores the
// data received along each edge in its block of recv.
func NeighborAlltoall[T Element](c *Comm, send, recv []T) error {
	const op = "NeighborAlltoall"
	x, err := neighborAlltoall(c, op, send, recv)
	return c.now(op, x, err)
}

// IneighborAlltoall is the nonblocking form of NeighborAlltoall. The buffers belong to the request
// until it is complete.
func IneighborAlltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	const op = "IneighborAlltoall"
	x, err := neighborAlltoall(c, op, send, recv)
	return c.later(op, x, err)
}

func neighborAlltoall[T Element](c *Comm, op string, send, recv []T) (*exchange, error) {
	x, err := newExchange[T](c, op)
	if err != nil {
		return nil, err
	}
	if !divides(len(x.out), len(send)) || !divides(len(x.in), len(recv)) {
		return x, c.failf(ErrBuffer, op, "send has %d elements for %d neighbours and recv %d for %d", len(send), len(x.out), len(recv), len(x.in))
	}
	x.send, x.recv = partsOf(send, shares(len(x.out), len(send))), partsOf(recv, shares(len(x.in), len(recv)))
	return x, nil
}

// NeighborAlltoallv is NeighborAlltoall with blocks of different lengths: edge i gets sendCounts[i]
// elements of send[sendDispls[i]:]. The recvCounts[j] elements received along edge j are stored at
// recv[recvDispls[j]:]. With nil displacements the blocks are contiguous.
func NeighborAlltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	const op = "NeighborAlltoallv"
	x, err := neighborAlltoallv(c, op, send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	return c.now(op, x, err)
}

// IneighborAlltoallv is the nonblocking form of NeighborAlltoallv. The buffers belong to the
// request until it is complete.
func IneighborAlltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Request, error) {
	const op = "IneighborAlltoallv"
	x, err := neighborAlltoallv(c, op, send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	return c.later(op, x, err)
}

func neighborAlltoallv[T Element](c *Comm, op string, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*exchange, error) {
	x, err := newExchange[T](c, op)
	if err != nil {
		return nil, err
	}
	from, err := c.edgeBlocks(op, "send", sendCounts, sendDispls, len(x.out), len(send))
	if err != nil {
		return x, err
	}
	to, err := c.edgeBlocks(op, "recv", recvCounts, recvDispls, len(x.in), len(recv))
	if err != nil {
		return x, err
	}
	x.send, x.recv = partsOf(send, from), partsOf(recv, to)
	return x, nil
}
