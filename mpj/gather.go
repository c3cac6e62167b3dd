package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Gather gathers the send buffers of all ranks, in rank order, into root's recv, whose length is
// Size() times the length of send. At other ranks recv may be nil. At root, send may be nil; root's
// part is then already in recv.
func Gather[T Element](c *Comm, send, recv []T, root int) error {
	each, err := checkParts(c, "Gather", "send", send, "recv", recv, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Gather", t.Gather(bytesOf(send), bytesOf(recv), evenBytes[T](each), root))
}

// Igather is the nonblocking form of Gather.
func Igather[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	each, err := checkParts(c, "Igather", "send", send, "recv", recv, root)
	if err != nil {
		return nil, err
	}
	return c.background("Igather", func(t *collective.Team) error {
		return t.Gather(bytesOf(send), bytesOf(recv), evenBytes[T](each), root)
	})
}

// checkParts returns the number of elements in each part of whole, which is significant at root
// only. mine is the part of this rank, and may be nil at root.
func checkParts[T Element](c *Comm, op, mineName string, mine []T, wholeName string, whole []T, root int) (each int, err error) {
	if err := c.checkIntra(op); err != nil {
		return 0, err
	}
	each, err = len(mine), c.checkRoot(op, root)
	switch {
	case err != nil || c.Rank() != root:
	case mine == nil && len(whole)%c.Size() == 0:
		each = len(whole) / c.Size()
	case len(whole) != c.Size()*len(mine):
		err = c.failf(ErrBuffer, op, "%s has %d elements and %s %d for %d ranks", mineName, len(mine), wholeName, len(whole), c.Size())
	}
	if c.world.checks {
		err = c.agree(op, elementCall[T](root, each), err)
	}
	return each, err
}

// Gatherv is Gather with blocks of different lengths: the block of rank i has counts[i] elements
// and is stored at recv[displs[i]:]. With nil displs the blocks are contiguous. recv, counts and
// displs are significant at root only.
func Gatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) error {
	b, err := checkBlocks(c, "Gatherv", true, "send", send, "recv", recv, counts, displs, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Gatherv", t.Gatherv(bytesOf(send), bytesOf(recv), inBytes[T](b), root))
}

// Igatherv is the nonblocking form of Gatherv.
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	b, err := checkBlocks(c, "Igatherv", true, "send", send, "recv", recv, counts, displs, root)
	if err != nil {
		return nil, err
	}
	return c.background("Igatherv", func(t *collective.Team) error {
		return t.Gatherv(bytesOf(send), bytesOf(recv), inBytes[T](b), root)
	})
}

// checkBlocks returns the blocks of whole at root, and no blocks elsewhere. come reports whether
// root receives the blocks; otherwise root sends them.
func checkBlocks[T Element](c *Comm, op string, come bool, mineName string, mine []T, wholeName string, whole []T, counts, displs []int, root int) (blocks, error) {
	if err := c.checkIntra(op); err != nil {
		return blocks{}, err
	}
	var b blocks
	err := c.checkRoot(op, root)
	if err == nil && c.Rank() == root {
		b, err = c.blocksOf(op, wholeName, counts, displs, len(whole))
		if err == nil && mine != nil && counts[root] != len(mine) {
			err = c.failf(ErrBuffer, op, "%s has %d elements, counts[%d] is %d", mineName, len(mine), root, counts[root])
		}
	}
	if c.world.checks {
		err = c.agree(op, blocksCall[T](c.Rank(), come, len(mine), b.counts, root), err)
	}
	return b, err
}

// blocksCall describes a call in which root has a block for each rank, and each other rank has one
// block of mine elements.
func blocksCall[T Element](rank int, come bool, mine int, counts []int, root int) calls.Call {
	k := elementCall[T](root, calls.None)
	at, elsewhere := &k.Out, &k.In
	if come {
		at, elsewhere = elsewhere, at
	}
	if rank != root {
		*elsewhere = onePart(root, mine)
		return k
	}
	for i, n := range counts {
		if i != root {
			*at = append(*at, calls.Part{Rank: i, Count: n})
		}
	}
	return k
}

// Scatter sends the i-th of Size() equal parts of root's send to the recv of rank i. At other ranks
// send may be nil. At root, recv may be nil; root's part then stays in send.
func Scatter[T Element](c *Comm, send, recv []T, root int) error {
	each, err := checkParts(c, "Scatter", "recv", recv, "send", send, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Scatter", t.Scatter(bytesOf(send), evenBytes[T](each), bytesOf(recv), root))
}

// Iscatter is the nonblocking form of Scatter.
func Iscatter[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	each, err := checkParts(c, "Iscatter", "recv", recv, "send", send, root)
	if err != nil {
		return nil, err
	}
	return c.background("Iscatter", func(t *collective.Team) error {
		return t.Scatter(bytesOf(send), evenBytes[T](each), bytesOf(recv), root)
	})
}

// Scatterv is Scatter with blocks of different lengths: rank i receives counts[i] elements of
// send[displs[i]:]. With nil displs the blocks are contiguous. send, counts and displs are
// significant at root only.
func Scatterv[T Element](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	b, err := checkBlocks(c, "Scatterv", false, "recv", recv, "send", send, counts, displs, root)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Scatterv", t.Scatterv(bytesOf(send), inBytes[T](b), bytesOf(recv), root))
}

// Iscatterv is the nonblocking form of Scatterv.
func Iscatterv[T Element](c *Comm, send []T, counts, displs []int, recv []T, root int) (*Request, error) {
	b, err := checkBlocks(c, "Iscatterv", false, "recv", recv, "send", send, counts, displs, root)
	if err != nil {
		return nil, err
	}
	return c.background("Iscatterv", func(t *collective.Team) error {
		return t.Scatterv(bytesOf(send), inBytes[T](b), bytesOf(recv), root)
	})
}
