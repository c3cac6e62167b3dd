package mpj

// Reduce combines the send of all ranks with op, element by element and in
// rank order, into root's recv. Elsewhere recv is not used and may be nil. send
// and recv may be the same slice.
func Reduce[T Element](c *Comm, send, recv []T, op Op[T], root int) error {
	if err := c.checkRoot("Reduce", root); err != nil {
		return err
	}
	if c.rank == root && len(recv) != len(send) {
		return c.failf(ErrBuffer, "Reduce", "send has %d elements and recv %d", len(send), len(recv))
	}
	return c.wrap("Reduce", reduce(c, send, recv, op, root))
}

// reduce runs up the binomial tree of rank 0 whatever the root is: there every
// subtree is a run of ranks, so that op meets them in order, and the result has
// the same bits for every root.
func reduce[T Element](c *Comm, send, recv []T, op Op[T], root int) error {
	mine := append([]T(nil), send...)
	var theirs []T
	for bit := 1; bit < c.size; bit *= 2 {
		if c.rank&bit != 0 {
			if err := c.send(reduceStep, bytesOf(mine), c.rank-bit); err != nil {
				return err
			}
			break
		}
		if c.rank+bit >= c.size {
			continue
		}
		if theirs == nil {
			theirs = make([]T, len(send))
		}
		if err := c.recv(reduceStep, bytesOf(theirs), c.rank+bit); err != nil {
			return err
		}
		op(mine, theirs)
		mine, theirs = theirs, mine
	}
	switch {
	case c.rank == root && root != 0:
		return c.recv(reduceStep, bytesOf(recv), 0)
	case c.rank == 0 && root != 0:
		return c.send(reduceStep, bytesOf(mine), root)
	case c.rank == root:
		copy(recv, mine)
	}
	return nil
}

// Allreduce is Reduce with the result at every rank.
func Allreduce[T Element](c *Comm, send, recv []T, op Op[T]) error {
	if err := c.checkCollective("Allreduce"); err != nil {
		return err
	}
	if len(recv) != len(send) {
		return c.failf(ErrBuffer, "Allreduce", "send has %d elements and recv %d", len(send), len(recv))
	}
	if err := reduce(c, send, recv, op, 0); err != nil {
		return c.wrap("Allreduce", err)
	}
	return c.wrap("Allreduce", c.bcast(bytesOf(recv), 0))
}

// Scan combines at each rank the send of ranks 0 up to its own, in order, into
// recv. send and recv may be the same slice.
func Scan[T Element](c *Comm, send, recv []T, op Op[T]) error {
	if err := c.checkCollective("Scan"); err != nil {
		return err
	}
	if len(recv) != len(send) {
		return c.failf(ErrBuffer, "Scan", "send has %d elements and recv %d", len(send), len(recv))
	}
	copy(recv, send)
	return c.wrap("Scan", scan(c, recv, op))
}

// scan doubles, in every step, the run of ranks that end at its own and are
// combined in acc (Hillis and Steele, 1986).
func scan[T Element](c *Comm, acc []T, op Op[T]) error {
	lower := make([]T, len(acc))
	for k := 1; k < c.size; k *= 2 {
		if c.rank+k < c.size {
			if err := c.send(scanStep, bytesOf(acc), c.rank+k); err != nil {
				return err
			}
		}
		if c.rank < k {
			continue
		}
		if err := c.recv(scanStep, bytesOf(lower), c.rank-k); err != nil {
			return err
		}
		op(lower, acc)
	}
	return nil
}
