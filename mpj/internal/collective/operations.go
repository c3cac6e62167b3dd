package collective

// For each operation, the function of the same name in lower case chooses the algorithm.

// Barrier returns when every member has called Barrier.
func (t *Team) Barrier() error {
	return t.carryOut(unrooted(Barrier), func() error { return barrier(t) })
}

// Bcast copies root's b to b of every member.
func (t *Team) Bcast(b []byte, root int) error {
	return t.carryOut(rooted(Bcast, root), func() error { return bcast(t, b, root) })
}

// BcastWhole is Bcast for members that do not know the length. It returns root's b.
func (t *Team) BcastWhole(b []byte, root int) ([]byte, error) {
	var whole []byte
	err := t.carryOut(rooted(Bcast, root), func() (err error) {
		whole, err = bcastWhole(t, b, root)
		return err
	})
	return whole, err
}

// Gather gathers mine of all members into the blocks of root's buf. At root, mine may be nil;
// root's block is then already in place.
func (t *Team) Gather(mine, buf []byte, blocks Blocks, root int) error {
	return t.carryOut(rooted(Gather, root), func() error { return gather(t, mine, buf, blocks, root, true) })
}

// Gatherv is Gather with blocks that only root knows.
func (t *Team) Gatherv(mine, buf []byte, blocks Blocks, root int) error {
	return t.carryOut(rooted(Gather, root), func() error { return gather(t, mine, buf, blocks, root, false) })
}

// Scatter sends the blocks of root's buf to mine of each member. At root, mine may be nil; root's
// block then stays in place.
func (t *Team) Scatter(buf []byte, blocks Blocks, mine []byte, root int) error {
	return t.carryOut(rooted(Scatter, root), func() error { return scatter(t, buf, blocks, mine, root, true) })
}

// Scatterv is Scatter with blocks that only root knows.
func (t *Team) Scatterv(buf []byte, blocks Blocks, mine []byte, root int) error {
	return t.carryOut(rooted(Scatter, root), func() error { return scatter(t, buf, blocks, mine, root, false) })
}

// Allgather completes buf at every member. Before the call, buf contains only the member's own
// block, at its place; afterwards it contains the blocks of all members.
func (t *Team) Allgather(buf []byte, blocks Blocks) error {
	return t.carryOut(unrooted(Allgather), func() error { return allgather(t, buf, blocks) })
}

// Alltoall sends block j of send to rank j, and stores the block from rank i in block i of recv.
// The buffers must not overlap.
func (t *Team) Alltoall(send []byte, out Blocks, recv []byte, in Blocks) error {
	return t.carryOut(unrooted(Alltoall), func() error { return alltoall(t, send, out, recv, in) })
}

// AlltoallInPlace swaps blocks between pairs of ranks: it replaces block i of buf with rank i's
// block for this rank. Both ranks use the same count for each other.
func (t *Team) AlltoallInPlace(buf []byte, blocks Blocks) error {
	return t.carryOut(unrooted(Alltoall), func() error { return alltoallInPlace(t, buf, blocks) })
}

// Reduce combines the send buffers of all members into root's recv, which is nil elsewhere. At
// root, send and recv may be the same.
func (t *Team) Reduce(send, recv []byte, r Reduction, root int) error {
	return t.carryOut(rooted(Reduce, root), func() error { return reduce(t, send, recv, r, root) })
}

// Allreduce combines the send buffers of all members into recv of each. send and recv may be the
// same.
func (t *Team) Allreduce(send, recv []byte, r Reduction) error {
	return t.carryOut(unrooted(Allreduce), func() error { return allreduce(t, send, recv, r) })
}

// ReduceScatter combines the send buffers of all members, which consist of one block for each, and
// stores each block in recv of its rank. Blocks consist of whole items. recv may be a part of send.
func (t *Team) ReduceScatter(send []byte, blocks Blocks, recv []byte, r Reduction) error {
	return t.carryOut(unrooted(ReduceScatter), func() error { return reduceScatter(t, send, blocks, recv, r) })
}

// Scan combines the contributions of all lower ranks into acc, which initially contains the
// contribution of this rank.
func (t *Team) Scan(acc []byte, r Reduction) error {
	return t.carryOut(unrooted(Scan), func() error { return scan(t, acc, r) })
}

// Exscan combines the send buffers of all lower ranks into recv. At rank 0, recv is unchanged. send
// and recv may be the same.
func (t *Team) Exscan(send, recv []byte, r Reduction) error {
	return t.carryOut(unrooted(Scan), func() error { return exscan(t, send, recv, r) })
}

// ReduceWhole is Reduce for values that each member encodes, with any lengths. encode encodes the
// partial result of this member. higher decodes a partial result of higher ranks and combines it with
// the own one. ReduceWhole returns the encoded result at root. At rank 0 it returns nil instead,
// because the partial result of rank 0 is the result.
func (t *Team) ReduceWhole(encode func() ([]byte, error), higher func(b []byte) error, root int) (b []byte, err error) {
	err = t.carryOut(rooted(Reduce, root), func() (err error) {
		b, err = reduceWholeAt(t, encode, higher, root)
		return err
	})
	return b, err
}

// AllreduceWhole is ReduceWhole with the result at all members.
func (t *Team) AllreduceWhole(encode func() ([]byte, error), higher func(b []byte) error) (b []byte, err error) {
	err = t.carryOut(unrooted(Allreduce), func() (err error) {
		b, err = allreduceWhole(t, encode, higher)
		return err
	})
	return b, err
}

// ScanWhole is Scan for values that each member encodes. lower decodes the partial result of all lower
// ranks and combines it with the own one. ScanWhole also returns it, encoded, or nil at rank 0.
func (t *Team) ScanWhole(encode func() ([]byte, error), lower func(b []byte) error) (before []byte, err error) {
	err = t.carryOut(unrooted(Scan), func() (err error) {
		before, err = scanWhole(t, encode, lower)
		return err
	})
	return before, err
}
