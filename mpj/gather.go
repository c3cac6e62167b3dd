package mpj

// A blocks divides a buffer among the ranks: rank i has counts[i] elements
// from displs[i] on. Without displs the blocks follow each other.
type blocks struct{ counts, displs []int }

// evenly returns n blocks of count elements.
func evenly(n, count int) blocks {
	counts := make([]int, n)
	for i := range counts {
		counts[i] = count
	}
	return packed(counts)
}

// packed returns blocks that follow each other.
func packed(counts []int) blocks {
	displs := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		displs[i] = displs[i-1] + counts[i-1]
	}
	return blocks{counts, displs}
}

// blocksOf checks the arguments of op that describe the blocks of a buffer of
// length elements.
func (c *Comm) blocksOf(op, buffer string, counts, displs []int, length int) (blocks, error) {
	if len(counts) != c.size || displs != nil && len(displs) != c.size {
		return blocks{}, c.failf(ErrCount, op, "%d counts and %d displacements of %s for %d ranks", len(counts), len(displs), buffer, c.size)
	}
	b := blocks{counts, displs}
	if displs == nil {
		b = packed(counts)
	}
	for i, n := range b.counts {
		if n < 0 || b.displs[i] < 0 || b.displs[i] > length-n {
			return blocks{}, c.failf(ErrCount, op, "%s has %d elements, block of rank %d is %d from %d on", buffer, length, i, n, b.displs[i])
		}
	}
	return b, nil
}

// block returns the part of buf that is rank i's.
func block[T Element](buf []T, b blocks, i int) []T {
	return buf[b.displs[i] : b.displs[i]+b.counts[i]]
}

// Gather puts the send of all ranks, in rank order, into root's recv, which
// has Size() times the length of send. Elsewhere recv may be nil.
func Gather[T Element](c *Comm, send, recv []T, root int) error {
	if err := c.checkRoot("Gather", root); err != nil {
		return err
	}
	if c.rank == root && len(recv) != c.size*len(send) {
		return c.failf(ErrBuffer, "Gather", "recv has %d elements for %d ranks with %d each", len(recv), c.size, len(send))
	}
	return c.wrap("Gather", gather(c, send, recv, evenly(c.size, len(send)), root))
}

// Gatherv is Gather with blocks of different lengths: that of rank i has
// counts[i] elements and goes to recv[displs[i]:]. With nil displs the blocks
// follow each other. recv, counts and displs count at root only.
func Gatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) error {
	if err := c.checkRoot("Gatherv", root); err != nil {
		return err
	}
	var b blocks
	if c.rank == root {
		var err error
		if b, err = c.blocksOf("Gatherv", "recv", counts, displs, len(recv)); err != nil {
			return err
		}
		if counts[root] != len(send) {
			return c.failf(ErrBuffer, "Gatherv", "send has %d elements, counts[%d] is %d", len(send), root, counts[root])
		}
	}
	return c.wrap("Gatherv", gather(c, send, recv, b, root))
}

func gather[T Element](c *Comm, send, recv []T, b blocks, root int) error {
	if c.rank != root {
		return c.send(gatherStep, bytesOf(send), root)
	}
	for i := range c.size {
		if i == root {
			copy(block(recv, b, i), send)
			continue
		}
		if err := c.recv(gatherStep, bytesOf(block(recv, b, i)), i); err != nil {
			return err
		}
	}
	return nil
}

// Scatter puts the i-th of Size() equal parts of root's send into the recv of
// rank i. Elsewhere send may be nil.
func Scatter[T Element](c *Comm, send, recv []T, root int) error {
	if err := c.checkRoot("Scatter", root); err != nil {
		return err
	}
	if c.rank == root && len(send) != c.size*len(recv) {
		return c.failf(ErrBuffer, "Scatter", "send has %d elements for %d ranks with %d each", len(send), c.size, len(recv))
	}
	return c.wrap("Scatter", scatter(c, send, evenly(c.size, len(recv)), recv, root))
}

// Scatterv is Scatter with blocks of different lengths: rank i gets counts[i]
// elements of send[displs[i]:]. With nil displs the blocks follow each other.
// send, counts and displs count at root only.
func Scatterv[T Element](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	if err := c.checkRoot("Scatterv", root); err != nil {
		return err
	}
	var b blocks
	if c.rank == root {
		var err error
		if b, err = c.blocksOf("Scatterv", "send", counts, displs, len(send)); err != nil {
			return err
		}
		if counts[root] != len(recv) {
			return c.failf(ErrBuffer, "Scatterv", "recv has %d elements, counts[%d] is %d", len(recv), root, counts[root])
		}
	}
	return c.wrap("Scatterv", scatter(c, send, b, recv, root))
}

func scatter[T Element](c *Comm, send []T, b blocks, recv []T, root int) error {
	if c.rank != root {
		return c.recv(scatterStep, bytesOf(recv), root)
	}
	for i := range c.size {
		if i == root {
			copy(recv, block(send, b, i))
			continue
		}
		if err := c.send(scatterStep, bytesOf(block(send, b, i)), i); err != nil {
			return err
		}
	}
	return nil
}
