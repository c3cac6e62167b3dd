package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/collective"

// A blocks divides a buffer among the ranks: rank i has counts[i] elements, starting at displs[i].
type blocks struct{ counts, displs []int }

// evenly returns n contiguous blocks of count elements.
func evenly(n, count int) blocks {
	counts := make([]int, n)
	for i := range counts {
		counts[i] = count
	}
	return packed(counts)
}

// packed returns contiguous blocks.
func packed(counts []int) blocks {
	displs := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		displs[i] = displs[i-1] + counts[i-1]
	}
	return blocks{counts, displs}
}

// blocksOf checks the arguments of op that describe the blocks of a buffer of length elements. With
// nil displs the blocks are contiguous.
func (c *Comm) blocksOf(op, buffer string, counts, displs []int, length int) (blocks, error) {
	if len(counts) != c.Size() || displs != nil && len(displs) != c.Size() {
		return blocks{}, c.failf(ErrCount, op, "%d counts and %d displacements of %s for %d ranks", len(counts), len(displs), buffer, c.Size())
	}
	b := blocks{counts, displs}
	if displs == nil {
		b = packed(counts)
	}
	for i, n := range b.counts {
		if n < 0 || b.displs[i] < 0 || b.displs[i] > length-n {
			return blocks{}, c.failf(ErrCount, op, "%s has %d elements, but the block of rank %d has %d at offset %d", buffer, length, i, n, b.displs[i])
		}
	}
	return b, nil
}

// block returns rank i's block of buf.
func block[T Element](buf []T, b blocks, i int) []T {
	return buf[b.displs[i] : b.displs[i]+b.counts[i]]
}

// inBytes converts b, which counts elements of type T, to blocks of bytes.
func inBytes[T Element](b blocks) collective.Blocks {
	return collective.Blocks{Unit: sizeOf[T](), Counts: b.counts, Displs: b.displs}
}

// evenBytes returns equal blocks of bytes for count elements each.
func evenBytes[T Element](count int) collective.Blocks {
	return collective.Even(count * sizeOf[T]())
}
