package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

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
	return run(c, callOf[T](c, "NeighborAllgather"), core.NeighborAllgather(argument(send), argument(recv)))
}

// IneighborAllgather is the nonblocking form of NeighborAllgather. The buffers belong to the
// request until it is complete.
func IneighborAllgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	return begin(c, callOf[T](c, "IneighborAllgather"), core.NeighborAllgather(argument(send), argument(recv)))
}

// NeighborAllgatherv is NeighborAllgather with blocks of different lengths: the counts[i] elements
// received along edge i are stored at recv[displs[i]:]. With nil displs the blocks are contiguous.
func NeighborAllgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	return run(c, callOf[T](c, "NeighborAllgatherv"), core.NeighborAllgatherv(argument(send), argument(recv), counts, displs))
}

// IneighborAllgatherv is the nonblocking form of NeighborAllgatherv. The buffers belong to the
// request until it is complete.
func IneighborAllgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return begin(c, callOf[T](c, "IneighborAllgatherv"), core.NeighborAllgatherv(argument(send), argument(recv), counts, displs))
}

// NeighborAlltoall divides send into equal blocks, one for each outgoing edge, and recv into equal
// blocks, one for each incoming edge. It sends each block of send along its edge, and stores the
// data received along each edge in its block of recv.
func NeighborAlltoall[T Element](c *Comm, send, recv []T) error {
	return run(c, callOf[T](c, "NeighborAlltoall"), core.NeighborAlltoall(argument(send), argument(recv)))
}

// IneighborAlltoall is the nonblocking form of NeighborAlltoall. The buffers belong to the request
// until it is complete.
func IneighborAlltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	return begin(c, callOf[T](c, "IneighborAlltoall"), core.NeighborAlltoall(argument(send), argument(recv)))
}

// NeighborAlltoallv is NeighborAlltoall with blocks of different lengths: edge i gets sendCounts[i]
// elements of send[sendDispls[i]:]. The recvCounts[j] elements received along edge j are stored at
// recv[recvDispls[j]:]. With nil displacements the blocks are contiguous.
func NeighborAlltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return run(c, callOf[T](c, "NeighborAlltoallv"), core.NeighborAlltoallv(argument(send), sendCounts, sendDispls, argument(recv), recvCounts, recvDispls))
}

// IneighborAlltoallv is the nonblocking form of NeighborAlltoallv. The buffers belong to the
// request until it is complete.
func IneighborAlltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Request, error) {
	return begin(c, callOf[T](c, "IneighborAlltoallv"), core.NeighborAlltoallv(argument(send), sendCounts, sendDispls, argument(recv), recvCounts, recvDispls))
}
