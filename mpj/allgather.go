package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// Allgather gathers the send buffers of all ranks, in rank order, into recv at every rank. The
// length of recv is Size() times the length of send. If send is nil, this rank's contribution is
// already at its place in recv.
func Allgather[T Element](c *Comm, send, recv []T) error {
	return run(c, callOf[T](c, "Allgather"), core.Allgather(argument(send), argument(recv)))
}

// Iallgather is the nonblocking form of Allgather.
func Iallgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	return begin(c, callOf[T](c, "Iallgather"), core.Allgather(argument(send), argument(recv)))
}

// Allgatherv is Allgather with blocks of different lengths: the block of rank i has counts[i]
// elements and is stored at recv[displs[i]:]. With nil displs the blocks are contiguous. All ranks
// pass the same counts.
func Allgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	return run(c, callOf[T](c, "Allgatherv"), core.Allgatherv(argument(send), argument(recv), counts, displs))
}

// Iallgatherv is the nonblocking form of Allgatherv.
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return begin(c, callOf[T](c, "Iallgatherv"), core.Allgatherv(argument(send), argument(recv), counts, displs))
}
