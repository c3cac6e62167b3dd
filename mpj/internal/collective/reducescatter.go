package collective

import "math/bits"

func reduceScatter(t *Team, send []byte, blocks Blocks, recv []byte, r Reduction) error {
	if t.Size == 1 {
		copy(recv, blocks.of(send, 0))
		return nil
	}
	switch a := t.choose(ReduceScatter, len(send)); {
	case a == RecursiveHalving && powerOfTwo(t.Size) && blocks.Counts == nil:
		return halvingReduceScatter(t, send, blocks, recv, r)
	case a == Levelled && t.Levels.contiguous:
		return levelledReduceScatter(t, send, blocks, recv, r)
	case a == Binomial:
		return treeReduceScatter(t, send, blocks, recv, r)
	}
	return pairwiseReduceScatter(t, send, recv, r, func(i int) (int, int) {
		if blocks.Counts == nil {
			return i * blocks.Each, (i + 1) * blocks.Each
		}
		from := blocks.Displs[i] * blocks.Unit
		return from, from + blocks.Counts[i]*blocks.Unit
	})
}

// pairwiseReduceScatter receives, in n-1 steps, every rank's contribution to its own block, and
// then combines them. block returns the byte range of a rank's block in send.
func pairwiseReduceScatter(t *Team, send, recv []byte, r Reduction, block func(rank int) (from, to int)) error {
	size := len(recv)
	s := borrow(t.Size * size)
	defer s.free()
	from, to := block(t.Rank)
	copy(s.b[t.Rank*size:], send[from:to])
	for k := 1; k < t.Size; k++ {
		dest, source := t.up(k), t.down(k)
		from, to := block(dest)
		if err := t.exchange(send[from:to], dest, s.b[source*size:(source+1)*size], source); err != nil {
			return err
		}
	}
	copy(recv, r.fold(s.b, t.Size, size))
	return nil
}

// halvingReduceScatter halves with the nearest rank first. This keeps runs of ranks complete, but
// leaves rank i with the block whose number has the bits of i in reverse. The blocks are therefore
// permuted in advance (Iannello, 1997).
func halvingReduceScatter(t *Team, send []byte, blocks Blocks, recv []byte, r Reduction) error {
	s := borrow(len(send))
	defer s.free()
	width := bits.Len(uint(t.Size - 1))
	for i := range t.Size {
		reversed := int(bits.Reverse64(uint64(i)) >> (64 - width))
		copy(blocks.of(s.b, reversed), blocks.of(send, i))
	}
	from, to, err := halve(t, s.b, s.b, r)
	if err == nil {
		copy(recv, s.b[from:to])
	}
	return err
}

// treeReduceScatter combines everything at rank 0, which sends each rank its block.
func treeReduceScatter(t *Team, send []byte, blocks Blocks, recv []byte, r Reduction) error {
	s := borrow(len(send))
	defer s.free()
	if err := binomialReduce(t, send, s.b, r, 0); err != nil {
		return err
	}
	return linearScatter(t, s.b, blocks, recv, 0)
}
