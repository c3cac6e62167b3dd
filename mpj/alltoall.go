package mpj

// Allgather puts the send of all ranks, in rank order, into the recv of every
// rank, which has Size() times the length of send.
func Allgather[T Element](c *Comm, send, recv []T) error {
	if err := c.checkCollective("Allgather"); err != nil {
		return err
	}
	if len(recv) != c.size*len(send) {
		return c.failf(ErrBuffer, "Allgather", "recv has %d elements for %d ranks with %d each", len(recv), c.size, len(send))
	}
	return c.wrap("Allgather", allgather(c, send, recv, evenly(c.size, len(send))))
}

// Allgatherv is Allgather with blocks of different lengths: that of rank i has
// counts[i] elements and goes to recv[displs[i]:]. With nil displs the blocks
// follow each other. All ranks give the same counts.
func Allgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) error {
	if err := c.checkCollective("Allgatherv"); err != nil {
		return err
	}
	b, err := c.blocksOf("Allgatherv", "recv", counts, displs, len(recv))
	if err != nil {
		return err
	}
	if counts[c.rank] != len(send) {
		return c.failf(ErrBuffer, "Allgatherv", "send has %d elements, counts[%d] is %d", len(send), c.rank, counts[c.rank])
	}
	return c.wrap("Allgatherv", allgather(c, send, recv, b))
}

// allgather passes the blocks round a ring: in every step each rank hands on
// the block that it got in the step before.
func allgather[T Element](c *Comm, send, recv []T, b blocks) error {
	copy(block(recv, b, c.rank), send)
	right, left := (c.rank+1)%c.size, (c.rank-1+c.size)%c.size
	for k := range c.size - 1 {
		out := (c.rank - k + c.size) % c.size
		in := (left - k + c.size) % c.size
		if err := c.exchange(allgatherStep, bytesOf(block(recv, b, out)), right, bytesOf(block(recv, b, in)), left); err != nil {
			return err
		}
	}
	return nil
}

// Alltoall sends the j-th of Size() equal parts of send to rank j, and puts the
// part that came from rank i into the i-th part of recv.
func Alltoall[T Element](c *Comm, send, recv []T) error {
	if err := c.checkCollective("Alltoall"); err != nil {
		return err
	}
	if len(send) != len(recv) || len(send)%c.size != 0 {
		return c.failf(ErrBuffer, "Alltoall", "send has %d elements and recv %d for %d ranks", len(send), len(recv), c.size)
	}
	b := evenly(c.size, len(send)/c.size)
	return c.wrap("Alltoall", alltoall(c, send, b, recv, b))
}

// Alltoallv is Alltoall with parts of different lengths: rank j gets
// sendCounts[j] elements of send[sendDispls[j]:], and what rank i sends,
// recvCounts[i] elements, goes to recv[recvDispls[i]:]. With nil displacements
// the parts follow each other.
func Alltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	if err := c.checkCollective("Alltoallv"); err != nil {
		return err
	}
	out, err := c.blocksOf("Alltoallv", "send", sendCounts, sendDispls, len(send))
	if err != nil {
		return err
	}
	in, err := c.blocksOf("Alltoallv", "recv", recvCounts, recvDispls, len(recv))
	if err != nil {
		return err
	}
	if sendCounts[c.rank] != recvCounts[c.rank] {
		return c.failf(ErrCount, "Alltoallv", "rank %d sends itself %d elements and expects %d", c.rank, sendCounts[c.rank], recvCounts[c.rank])
	}
	return c.wrap("Alltoallv", alltoall(c, send, out, recv, in))
}

// alltoall exchanges pairwise: in step k with the ranks at distance k.
func alltoall[T Element](c *Comm, send []T, out blocks, recv []T, in blocks) error {
	copy(block(recv, in, c.rank), block(send, out, c.rank))
	for k := 1; k < c.size; k++ {
		dest, source := (c.rank+k)%c.size, (c.rank-k+c.size)%c.size
		if err := c.exchange(alltoallStep, bytesOf(block(send, out, dest)), dest, bytesOf(block(recv, in, source)), source); err != nil {
			return err
		}
	}
	return nil
}
