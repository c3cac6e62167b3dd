package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// Gather gathers the send buffers of all ranks, in rank order, into root's recv, whose length is
// Size() times the length of send. At other ranks recv may be nil. At root, send may be nil; root's
// part is then already in recv.
func Gather[T Element](c *Comm, send, recv []T, root int) error {
	return run(c, callOf[T](c, "Gather"), core.Gather(argument(send), argument(recv), root))
}

// Igather is the nonblocking form of Gather.
func Igather[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return begin(c, callOf[T](c, "Igather"), core.Gather(argument(send), argument(recv), root))
}

// Gatherv is Gather with blocks of different lengths: the block of rank i has counts[i] elements
// and is stored at recv[displs[i]:]. With nil displs the blocks are contiguous. recv, counts and
// displs are significant at root only.
func Gatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return run(c, callOf[T](c, "Gatherv"), core.Gatherv(argument(send), argument(recv), counts, displs, root))
}

// Igatherv is the nonblocking form of Gatherv.
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return begin(c, callOf[T](c, "Igatherv"), core.Gatherv(argument(send), argument(recv), counts, displs, root))
}

// Scatter sends the i-th of Size() equal parts of root's send to the recv of rank i. At other ranks
// send may be nil. At root, recv may be nil; root's part then stays in send.
func Scatter[T Element](c *Comm, send, recv []T, root int) error {
	return run(c, callOf[T](c, "Scatter"), core.Scatter(argument(send), argument(recv), root))
}

// Iscatter is the nonblocking form of Scatter.
func Iscatter[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return begin(c, callOf[T](c, "Iscatter"), core.Scatter(argument(send), argument(recv), root))
}

// Scatterv is Scatter with blocks of different lengths: rank i receives counts[i] elements of
// send[displs[i]:]. With nil displs the blocks are contiguous. send, counts and displs are
// significant at root only.
func Scatterv[T Element](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	return run(c, callOf[T](c, "Scatterv"), core.Scatterv(argument(send), counts, displs, argument(recv), root))
}

// Iscatterv is the nonblocking form of Scatterv.
func Iscatterv[T Element](c *Comm, send []T, counts, displs []int, recv []T, root int) (*Request, error) {
	return begin(c, callOf[T](c, "Iscatterv"), core.Scatterv(argument(send), counts, displs, argument(recv), root))
}
